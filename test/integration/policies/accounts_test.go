// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// repairs is the account as which the policies of these tests act.
const repairs = tenant + "/repairs"

var (
	// argo applies policies from Git: it has the verb delegate on every policy.
	argo = who{"system:serviceaccount:argocd:controller", []string{"authors", "delegators"}}
	// ivy may impersonate the account repairs, and ivo an account of the same name elsewhere.
	ivy = who{"ivy", []string{"authors"}}
	ivo = who{"ivo", []string{"authors"}}
	// dora has the verb delegate on one policy.
	dora = who{"dora", []string{"authors"}}
)

// delegated is the only policy that dora may delegate.
const delegated = "delegated-to-dora"

// bindDelegates gives these users what tells them apart.
func bindDelegates(ctx context.Context) error {
	if err := apiserver.Bind(ctx, admin, "delegators-delegate", "plumbline-policy-delegator", "delegators"); err != nil {
		return err
	}
	for _, to := range []struct{ user, namespace string }{{"ivy", tenant}, {"ivo", "default"}} {
		role := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: to.namespace, Name: "act-as-repairs"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"repairs"}, Verbs: []string{"impersonate"}}},
		}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: to.user}},
		}
		if err := given(ctx, role, binding, to.namespace); err != nil {
			return err
		}
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "delegate-one-policy"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"remediationpolicies"}, ResourceNames: []string{delegated}, Verbs: []string{"delegate"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "dora"}},
	}
	return given(ctx, role, binding, "")
}

func given(ctx context.Context, role, binding client.Object, namespace string) error {
	for _, o := range []client.Object{role, binding} {
		if err := admin.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	var subject rbacv1.Subject
	var ref rbacv1.RoleRef
	switch b := binding.(type) {
	case *rbacv1.RoleBinding:
		subject, ref = b.Subjects[0], b.RoleRef
	case *rbacv1.ClusterRoleBinding:
		subject, ref = b.Subjects[0], b.RoleRef
	}
	return apiserver.AwaitBound(ctx, admin, subject, namespace, ref)
}

// actingAs is a policy of a service account.
func actingAs(mode v1alpha1.PolicyMode, account string) func(*v1alpha1.RemediationPolicy) {
	return func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode, p.Spec.ServiceAccountName = mode, account }
}

// needsRight begins the words in which a policy of a service account is refused.
const needsRight = "a policy with spec.serviceAccountName acts as that service account: "

func needs(user, account string) string {
	return needsRight + user + " needs the verb impersonate on serviceaccounts " + account + ", or the verb delegate on remediationpolicies.plumbline.dev "
}

func TestWhoMayHaveAPolicyActAsAServiceAccount(t *testing.T) {
	tests := map[string]struct {
		who     who
		policy  func(*v1alpha1.RemediationPolicy)
		refused string
	}{
		"an author without the permission":                   {ann, actingAs("Active", repairs), needs("ann", repairs)},
		"also in a policy that only watches":                 {ann, actingAs("ObserveOnly", repairs), needs("ann", repairs)},
		"also in a halted one":                               {ann, actingAs("Halted", repairs), needs("ann", repairs)},
		"who may impersonate the account":                    {ivy, actingAs("Active", repairs), ""},
		"who may impersonate it, of another account":         {ivy, actingAs("Active", tenant+"/other"), needs("ivy", tenant+"/other")},
		"who may impersonate it, of another namespace":       {ivy, actingAs("Active", "default/repairs"), needs("ivy", "default/repairs")},
		"who may impersonate one of that name elsewhere":     {ivo, actingAs("Active", repairs), needs("ivo", repairs)},
		"who may impersonate it, of the executor's":          {ivy, actingAs("Active", "plumbline-system/plumbline-executor"), needsRight},
		"the account itself, without the permission":         {who{"system:serviceaccount:shop:repairs", []string{"authors"}}, actingAs("Active", repairs), needsRight},
		"who may delegate each policy, from Git":             {argo, actingAs("Active", repairs), ""},
		"who may delegate another policy":                    {dora, actingAs("Active", repairs), needs("dora", repairs)},
		"an administrator":                                   {root, actingAs("Active", repairs), ""},
		"a member of system:masters":                         {master, actingAs("Active", repairs), ""},
		"who may delegate, but not write policies":           {who{"alice", []string{"tenants", "delegators"}}, actingAs("Active", repairs), `cannot create resource "remediationpolicies"`},
		"who may delegate still names no other user":         {argo, policyOf("Active", "ann"), "spec.requestedBy must be the authenticated user"},
		"an account that does not exist, by one who may all": {argo, actingAs("Active", "nowhere/nobody"), ""},
	}
	number := 0
	for name, test := range tests {
		number++
		p := remediationPolicy(fmt.Sprintf("account-%d", number))
		test.policy(p)
		t.Run(name, func(t *testing.T) {
			assertAnswer(t, mustBe(t, test.who.user, test.who.groups...).Create(t.Context(), p), test.refused)
		})
	}
}

func TestWhoMayDelegateOnePolicyMayDelegateThatOne(t *testing.T) {
	p := remediationPolicy(delegated)
	actingAs("Active", repairs)(p)
	assertAnswer(t, mustBe(t, dora.user, dora.groups...).Create(t.Context(), p), "")
}

func TestWhoMayChangeAPolicyOfAServiceAccount(t *testing.T) {
	const wider = `"minimumSeverity":"Info","exceptions":{"gitOps":"Allowed"}`
	active, watching := actingAs("Active", repairs), actingAs("ObserveOnly", repairs)
	tests := map[string]struct {
		stored  func(*v1alpha1.RemediationPolicy) // by argo
		who     who
		patch   string
		refused string
	}{
		"a tenant widens an active one":                       {active, ann, `{"spec":{` + wider + `}}`, needs("ann", repairs)},
		"a tenant narrows an active one":                      {active, ann, `{"spec":{"minimumSeverity":"Critical"}}`, needs("ann", repairs)},
		"a tenant activates one":                              {watching, ann, `{"spec":{"mode":"Active"}}`, needs("ann", repairs)},
		"a tenant widens one that the next apply activates":   {watching, ann, `{"spec":{` + wider + `}}`, needs("ann", repairs)},
		"a tenant halts and widens in one write":              {active, ann, `{"spec":{"mode":"Halted",` + wider + `}}`, needs("ann", repairs)},
		"a tenant halts it and takes a limit away":            {active, ann, `{"spec":{"mode":"Halted","safety":null}}`, ""},
		"a tenant halts it and removes its selector":          {func(p *v1alpha1.RemediationPolicy) { active(p); p.Spec.Selector = labeled() }, ann, `{"spec":{"mode":"Halted","selector":null}}`, needs("ann", repairs)},
		"a tenant halts it and takes the account off":         {active, ann, `{"spec":{"mode":"Halted","serviceAccountName":null}}`, needs("ann", repairs)},
		"a tenant takes it over in her own name":              {active, ann, `{"spec":{"serviceAccountName":null,"requestedBy":"ann"}}`, needs("ann", repairs)},
		"a tenant names another account":                      {watching, ann, `{"spec":{"serviceAccountName":"shop/other"}}`, needs("ann", "shop/other and "+repairs)},
		"a tenant halts it":                                   {active, ann, `{"spec":{"mode":"Halted"}}`, ""},
		"a tenant makes it watch only":                        {active, ann, `{"spec":{"mode":"ObserveOnly"}}`, ""},
		"a tenant leaves its mode out":                        {active, ann, `{"spec":{"mode":null}}`, ""},
		"a label on an active one":                            {active, ann, `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"a write that changes nothing, as a migration makes":  {active, ann, `{}`, ""},
		"the status through the object itself is not stored":  {active, ann, `{"status":{"waitingFor":"nothing"}}`, ""},
		"who may impersonate the account widens it":           {active, ivy, `{"spec":{` + wider + `}}`, ""},
		"who may impersonate it activates it":                 {watching, ivy, `{"spec":{"mode":"Active"}}`, ""},
		"who may impersonate it takes it over":                {active, ivy, `{"spec":{"serviceAccountName":null,"requestedBy":"ivy"}}`, ""},
		"who may impersonate it names an account beyond that": {active, ivy, `{"spec":{"serviceAccountName":"default/repairs"}}`, needs("ivy", "default/repairs and "+repairs)},
		"who may impersonate another makes it hers":           {active, ivo, `{"spec":{"serviceAccountName":"default/repairs"}}`, needs("ivo", "default/repairs and "+repairs)},
		"the tool of Git changes it":                          {active, argo, `{"spec":{` + wider + `}}`, ""},
		"an administrator changes it":                         {active, root, `{"spec":{` + wider + `}}`, ""},
		"the assessor cannot change one":                      {active, judge, `{"spec":{` + wider + `}}`, "cannot patch resource"},
	}
	number := 0
	for name, test := range tests {
		number++
		p := remediationPolicy(fmt.Sprintf("account-changed-%d", number))
		test.stored(p)
		t.Run(name, func(t *testing.T) {
			mustCreate(t, argo, p)
			assertAnswer(t, merged(t, test.who, p, test.patch), test.refused)
		})
	}
}

// The executor takes a plan's word for the account only if its policy has the account.
func TestAPlanInTheNameOfAServiceAccountIsTheAssessors(t *testing.T) {
	const user = "system:serviceaccount:shop:repairs"
	forged := func(initiatedBy string) *v1alpha1.RemediationPlan {
		p := remediationPlan("account-forged", user)
		p.Spec.Plan.InitiatedBy = initiatedBy
		return p
	}
	const inOnesName = "spec.plan.requester and spec.plan.initiatedBy must be the authenticated user: set both to "
	for name, test := range map[string]struct {
		who     who
		plan    *v1alpha1.RemediationPlan
		refused string
	}{
		"an administrator, as the policy would": {root, forged("system:auto"), inOnesName + "root"},
		"an administrator, in two names":        {root, forged("root"), inOnesName + "root"},
		"the tool of Git":                       {who{argo.user, append([]string{"roots"}, argo.groups...)}, forged("system:auto"), inOnesName + argo.user},
		"the assessor":                          {judge, forged("system:auto"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			assertAnswer(t, mustBe(t, test.who.user, test.who.groups...).Create(t.Context(), test.plan), test.refused)
		})
	}
}

func labeled() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

// applied is the manifest of a policy, as a tool sends it.
func applied(name string, spec map[string]any) *unstructured.Unstructured {
	maps.Copy(spec, map[string]any{"environmentName": "production", "trigger": "Immediate", "action": "Reconcile"})
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "RemediationPolicy", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func applyPolicy(t *testing.T, by who, manager string, o *unstructured.Unstructured) error {
	t.Helper()
	return mustBe(t, by.user, by.groups...).Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(manager), client.ForceOwnership)
}

func TestServerSideApplyIsNoWayAroundThePermissionForAnAccount(t *testing.T) {
	const name = "applied-account"
	fromGit := func() *unstructured.Unstructured {
		return applied(name, map[string]any{"mode": "Active", "serviceAccountName": repairs})
	}
	steps := []struct {
		what    string
		who     who
		spec    *unstructured.Unstructured
		refused string
	}{
		{"a tenant applies it first", ann, fromGit(), needs("ann", repairs)},
		{"the tool of Git applies it", argo, fromGit(), ""},
		{"the tool applies it again, with no change", argo, fromGit(), ""},
		{"a tenant takes its fields with force, unchanged", ann, fromGit(), ""},
		{"a tenant takes a further field with force", ann, applied(name, map[string]any{"mode": "Active", "serviceAccountName": repairs, "minimumSeverity": "Info"}), needs("ann", repairs)},
		{"a tenant adds a field that Git leaves out", ann, applied(name, map[string]any{"mode": "Halted", "exceptions": map[string]any{"gitOps": "Allowed"}}), needs("ann", repairs)},
		{"a tenant takes the name of the tool's field manager", who{"ann", []string{"authors"}}, applied(name, map[string]any{"mode": "Active", "minimumSeverity": "Low"}), needs("ann", repairs)},
		{"a tenant halts it by an apply", ann, applied(name, map[string]any{"mode": "Halted"}), ""},
		{"the tool puts Git back", argo, fromGit(), ""},
	}
	for _, step := range steps {
		manager := step.who.user
		if step.who.user == argo.user {
			manager = "argocd"
		}
		assertAnswer(t, applyPolicy(t, step.who, manager, step.spec), step.refused)
		if t.Failed() {
			t.Fatalf("%s", step.what)
		}
	}
	p := &v1alpha1.RemediationPolicy{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
		t.Fatal(err)
	}
	if s := p.Spec; s.Mode != v1alpha1.PolicyModeActive || s.ServiceAccountName != repairs || s.Exceptions.GitOps != v1alpha1.Forbidden || s.MinimumSeverity != v1alpha1.SeverityHigh {
		t.Errorf("what Git asked for became %+v", s)
	}
}

// An apply keeps the fields that its manifest leaves out, whoever wrote them.
func TestAnAccountLendsItsRightsToNoFieldThatAnotherWriterLeft(t *testing.T) {
	const name, created = "account-came-late", "serviceAccountName is set when the policy is created"
	fromGit := applied(name, map[string]any{"mode": "Active", "serviceAccountName": repairs})
	p := remediationPolicy(name)
	p.Spec.Exceptions.GitOps = v1alpha1.Allowed
	mustCreate(t, ann, p)
	if err := applyPolicy(t, argo, "argocd", fromGit.DeepCopy()); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), created) {
		t.Errorf("the apply over a tenant's policy gave %v", err)
	}
	if err := merged(t, root, p.DeepCopy(), `{"spec":{"serviceAccountName":"shop/repairs"}}`); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), created) {
		t.Errorf("an administrator's patch of a tenant's policy gave %v", err)
	}
	if err := mustBe(t, argo.user, argo.groups...).Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	assertAnswer(t, applyPolicy(t, argo, "argocd", fromGit), "")
}

func TestTheSubresourcesOfAPolicyLeadNowhere(t *testing.T) {
	p := remediationPolicy("account-subresources")
	actingAs("Active", repairs)(p)
	mustCreate(t, argo, p)
	t.Run("the status carries no other spec", func(t *testing.T) {
		assertAnswer(t, mergedStatus(t, judge, p.DeepCopy(), `{"spec":{"minimumSeverity":"Info"},"status":{"digest":"sha256:aa"}}`), "")
		now := &v1alpha1.RemediationPolicy{}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), now); err != nil || now.Spec.MinimumSeverity != v1alpha1.SeverityHigh {
			t.Errorf("severity %s, error %v", now.Spec.MinimumSeverity, err)
		}
	})
	t.Run("there is no scale", func(t *testing.T) {
		scale := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{"replicas": int64(1)}}}
		err := admin.SubResource("scale").Update(t.Context(), p.DeepCopy(), client.WithSubResourceBody(scale))
		if !apierrors.IsNotFound(err) {
			t.Errorf("error = %v, want NotFound", err)
		}
	})
}
