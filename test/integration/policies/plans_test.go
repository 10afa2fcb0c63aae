// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestWhoMayMakeAPlan(t *testing.T) {
	const (
		inOnesName = "spec.plan.requester and spec.plan.initiatedBy must be the authenticated user: set both to "
		ownGroups  = "spec.plan.requesterGroups must be groups of the authenticated user, "
		control    = "spec.control.requestedBy must be the authenticated user whenever spec.control changes"
	)
	by := func(requester, initiatedBy string, groups ...string) func(*v1alpha1.RemediationPlanSpec) {
		return func(s *v1alpha1.RemediationPlanSpec) {
			s.Plan.Requester, s.Plan.InitiatedBy, s.Plan.RequesterGroups = requester, initiatedBy, groups
		}
	}
	paused := func(requestedBy string) func(*v1alpha1.RemediationPlanSpec) {
		return func(s *v1alpha1.RemediationPlanSpec) {
			s.Control = v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: requestedBy}
		}
	}
	tests := map[string]struct {
		who     who
		plan    func(*v1alpha1.RemediationPlanSpec)
		refused string
	}{
		"the assessor with the right of a policy's author": {judge, by("ann", "system:auto", "team-a"), ""},
		"the assessor for somebody who asked":              {judge, by("ann", "ann"), ""},
		"the executor makes none":                          {execute, by(executor, executor), `cannot create resource "remediationplans"`},
		"somebody in his own name":                         {root, by("root", "root"), ""},
		"somebody in his own name and with his groups":     {root, by("root", "root", "roots"), ""},
		"somebody with another's right":                    {root, by("ann", "root"), inOnesName + "root"},
		"somebody as if another had asked":                 {root, by("root", "ann"), inOnesName + "root"},
		"somebody as if nobody had asked":                  {root, by("root", "system:auto"), inOnesName + "root"},
		"somebody with the right of the assessor":          {root, by(assessor, assessor), inOnesName + "root"},
		"somebody with groups that are not his":            {root, by("root", "root", "roots", "platform"), ownGroups + "root"},
		"a member of system:masters with another's right":  {master, by("ann", "ann"), inOnesName + "master"},
		"a namesake of the assessor with another's right":  {judgelet, by("ann", "ann"), inOnesName + "plumbline-assessor"},
		"somebody unknown with another's right":            {who{"system:anonymous", []string{"roots"}}, by("ann", "ann"), inOnesName + "system:anonymous"},
		"a paused one by the assessor for another":         {judge, paused("ann"), control},
		"a paused one in one's own name":                   {judge, paused(assessor), ""},
		"an operator of plans makes none":                  {olga, by("olga", "olga"), `cannot create resource "remediationplans"`},
	}
	number := 0
	for name, test := range tests {
		number++
		p := remediationPlan(fmt.Sprintf("made-%d", number), "ann")
		test.plan(&p.Spec)
		t.Run(name, func(t *testing.T) {
			assertAnswer(t, mustBe(t, test.who.user, test.who.groups...).Create(t.Context(), p), test.refused)
		})
	}
}

func TestWhatIsNeverATarget(t *testing.T) {
	const never = "spec.plan.targets: kinds that hold credentials, give rights, configure the API server or belong to Plumbline are never remediated"
	tests := map[string]struct {
		apiVersion, kind string
		refused          string
	}{
		"a Deployment is one":                  {"apps/v1", "Deployment", ""},
		"a ConfigMap is one":                   {"v1", "ConfigMap", ""},
		"a custom kind is one":                 {"example.com/v1", "Widget", ""},
		"a custom kind may be called Secret":   {"vault.example.com/v1", "Secret", ""},
		"a group that ends like a denied one":  {"other.plumbline.dev/v1", "Thing", ""},
		"a Secret":                             {"v1", "Secret", never},
		"a ServiceAccount":                     {"v1", "ServiceAccount", never},
		"a Node":                               {"v1", "Node", never},
		"a Namespace":                          {"v1", "Namespace", never},
		"a PersistentVolume":                   {"v1", "PersistentVolume", never},
		"Endpoints":                            {"v1", "Endpoints", never},
		"a Binding":                            {"v1", "Binding", never},
		"a ComponentStatus":                    {"v1", "ComponentStatus", never},
		"an Event":                             {"v1", "Event", never},
		"a Baseline":                           {"plumbline.dev/v1alpha1", "Baseline", never},
		"our kinds in a version to come":       {"plumbline.dev/v1", "RemediationPlan", never},
		"a Role":                               {"rbac.authorization.k8s.io/v1", "Role", never},
		"a RoleBinding":                        {"rbac.authorization.k8s.io/v1", "RoleBinding", never},
		"a webhook configuration":              {"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", never},
		"a CustomResourceDefinition":           {"apiextensions.k8s.io/v1", "CustomResourceDefinition", never},
		"an APIService":                        {"apiregistration.k8s.io/v1", "APIService", never},
		"a CertificateSigningRequest":          {"certificates.k8s.io/v1", "CertificateSigningRequest", never},
		"a TokenReview":                        {"authentication.k8s.io/v1", "TokenReview", never},
		"a SubjectAccessReview":                {"authorization.k8s.io/v1", "SubjectAccessReview", never},
		"a Lease":                              {"coordination.k8s.io/v1", "Lease", never},
		"a FlowSchema":                         {"flowcontrol.apiserver.k8s.io/v1", "FlowSchema", never},
		"a RuntimeClass":                       {"node.k8s.io/v1", "RuntimeClass", never},
		"an Event of the newer group":          {"events.k8s.io/v1", "Event", never},
		"a group with more behind its version": {"rbac.authorization.k8s.io/v1/x", "Role", never},
	}
	number := 0
	for name, test := range tests {
		number++
		first := remediationPlan(fmt.Sprintf("target-%d", number), "ann")
		first.Spec.Plan.Targets[0].APIVersion, first.Spec.Plan.Targets[0].Kind = test.apiVersion, test.kind
		// The same behind an innocent one.
		second := remediationPlan(fmt.Sprintf("target-%d", number), "ann")
		second.Spec.Plan.Targets = append(second.Spec.Plan.Targets, first.Spec.Plan.Targets[0])
		second.Spec.Plan.Batches[0].Steps = []int32{0, 1}
		t.Run(name, func(t *testing.T) {
			for _, p := range []*v1alpha1.RemediationPlan{first, second} {
				assertAnswer(t, mustBe(t, assessor).Create(t.Context(), p, client.DryRunAll), test.refused)
			}
		})
	}
}

// phases a plan is in before the act; each is written by the executor.
const (
	untouched = ``
	deferred  = `"phase":"Deferred"`
	running   = `"phase":"Running","epoch":1,"steps":[{"index":0,"state":"Intent"}]`
	sealing   = `"phase":"Sealing","epoch":1`
	ended     = `"phase":"Succeeded","epoch":1`
)

func patchPlan(patch string) func(*testing.T, who, *v1alpha1.RemediationPlan) error {
	return func(t *testing.T, by who, p *v1alpha1.RemediationPlan) error { return merged(t, by, p, patch) }
}

func patchPlanStatus(patch string) func(*testing.T, who, *v1alpha1.RemediationPlan) error {
	return func(t *testing.T, by who, p *v1alpha1.RemediationPlan) error {
		return mergedStatus(t, by, p, `{"status":{`+patch+`}}`)
	}
}

func ask(verb, requestedBy string) func(*testing.T, who, *v1alpha1.RemediationPlan) error {
	return patchPlan(fmt.Sprintf(`{"spec":{"control":{"verb":%q,"requestedBy":%q}}}`, verb, requestedBy))
}

func deletePlan(t *testing.T, by who, p *v1alpha1.RemediationPlan) error {
	return mustBe(t, by.user, by.groups...).Delete(t.Context(), p)
}

func deletePlans(t *testing.T, by who, p *v1alpha1.RemediationPlan) error {
	return mustBe(t, by.user, by.groups...).DeleteAllOf(t.Context(), p, client.InNamespace(tenant), client.MatchingLabels{"only": p.Name})
}

func TestWhoMayChangeAPlan(t *testing.T) {
	const (
		control    = "spec.control.requestedBy must be the authenticated user whenever spec.control changes, also to take a request back: set it to "
		onlyMeta   = "only the assessor changes owners, finalizers and labels of a RemediationPlan"
		onlyStatus = "only the executor writes the status of a RemediationPlan"
		underWay   = "a RemediationPlan that is under way cannot be deleted: set spec.control.verb to Cancel"
	)
	tests := map[string]struct {
		phase   string
		paused  bool // by olga
		who     who
		act     func(*testing.T, who, *v1alpha1.RemediationPlan) error
		refused string
	}{
		"olga executes in her name":                     {deferred, false, olga, ask("Execute", "olga"), ""},
		"olga pauses in her name":                       {running, false, olga, ask("Pause", "olga"), ""},
		"olga cancels in her name":                      {running, false, olga, ask("Cancel", "olga"), ""},
		"olga pauses in another's name":                 {running, false, olga, ask("Pause", "ann"), control + "olga"},
		"an administrator cancels in another's name":    {running, false, root, ask("Cancel", "olga"), control + "root"},
		"in the name of the executor":                   {running, false, root, ask("Execute", executor), control + "root"},
		"a reason is added to olga's request":           {running, true, root, patchPlan(`{"spec":{"control":{"reason":"x"}}}`), control + "root"},
		"olga's pause becomes a cancellation":           {running, true, root, patchPlan(`{"spec":{"control":{"verb":"Cancel"}}}`), control + "root"},
		"olga resumes and keeps her name":               {running, true, olga, patchPlan(`{"spec":{"control":{"verb":null}}}`), ""},
		"somebody resumes in his own name":              {running, true, root, patchPlan(`{"spec":{"control":{"verb":null,"requestedBy":"root"}}}`), ""},
		"somebody resumes and leaves her name":          {running, true, root, patchPlan(`{"spec":{"control":{"verb":null}}}`), control + "root"},
		"somebody resumes and leaves no name":           {running, true, root, patchPlan(`{"spec":{"control":null}}`), control + "root"},
		"olga herself leaves no name":                   {running, true, olga, patchPlan(`{"spec":{"control":null}}`), control + "olga"},
		"an empty request where there was none":         {running, false, olga, patchPlan(`{"spec":{"control":{}}}`), ""},
		"olga annotates beside a request":               {running, true, olga, patchPlan(`{"metadata":{"annotations":{"note":"x"}}}`), ""},
		"a write that changes nothing":                  {running, true, root, patchPlan(`{}`), ""},
		"somebody who may only see plans":               {running, false, ann, ask("Pause", "ann"), `cannot patch resource "remediationplans"`},
		"the executor asks for nothing":                 {running, false, execute, ask("Execute", executor), `cannot patch resource "remediationplans"`},
		"olga moves it out of a selector":               {running, false, olga, patchPlan(`{"metadata":{"labels":{"plumbline.dev/policy":"x"}}}`), onlyMeta},
		"olga adds a finalizer":                         {running, false, olga, patchPlan(`{"metadata":{"finalizers":["example.com/stay"]}}`), onlyMeta},
		"olga gives it an owner that is gone":           {running, false, olga, patchPlan(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"gone"}]}}`), onlyMeta},
		"the garbage collector removes an owner":        {running, false, gc, patchPlan(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"there"}]}}`), ""},
		"the executor says how far it is":               {running, false, execute, patchPlanStatus(`"steps":[{"index":0,"state":"Applied"}]`), ""},
		"the executor begins it":                        {untouched, false, execute, patchPlanStatus(`"phase":"Running","epoch":1`), ""},
		"the assessor says how far it is":               {running, false, judge, patchPlanStatus(ended), `cannot patch resource "remediationplans/status"`},
		"an administrator says it has ended":            {running, false, root, patchPlanStatus(ended), onlyStatus},
		"a member of system:masters says so":            {running, false, master, patchPlanStatus(ended), onlyStatus},
		"an executor of another namespace says so":      {running, false, namesake, patchPlanStatus(ended), onlyStatus},
		"a name that begins alike says so":              {running, false, almost, patchPlanStatus(ended), onlyStatus},
		"an administrator deletes a running one":        {running, false, root, deletePlan, underWay},
		"an administrator deletes one that is sealed":   {sealing, false, root, deletePlan, underWay},
		"an administrator deletes running ones at once": {running, false, root, deletePlans, underWay},
		"an administrator deletes one that has ended":   {ended, false, root, deletePlan, ""},
		"an administrator deletes one not begun":        {untouched, false, root, deletePlan, ""},
		"an administrator deletes one that waits":       {deferred, false, root, deletePlan, ""},
		"the assessor deletes one that has ended":       {ended, false, judge, deletePlan, ""},
		"the assessor deletes a running one":            {running, false, judge, deletePlan, underWay},
		"the namespace controller deletes all":          {running, false, cleaner, deletePlans, ""},
		"the garbage collector deletes a running one":   {running, false, gc, deletePlan, ""},
		"olga may delete none":                          {ended, false, olga, deletePlan, `cannot delete resource "remediationplans"`},
	}
	number := 0
	for name, test := range tests {
		number++
		p := remediationPlan(fmt.Sprintf("plan-%d", number), "ann")
		p.Labels = map[string]string{"only": p.Name}
		t.Run(name, func(t *testing.T) {
			mustCreate(t, judge, p)
			if test.phase != untouched {
				if err := patchPlanStatus(test.phase)(t, execute, p); err != nil {
					t.Fatalf("writing its status: %v", err)
				}
			}
			if test.paused {
				if err := ask("Pause", "olga")(t, olga, p); err != nil {
					t.Fatalf("pausing it: %v", err)
				}
			}
			assertAnswer(t, test.act(t, test.who, p), test.refused)
		})
	}
}

// The role that makes the owner of a namespace operate plans leaves the rest alone.
func TestWhatAnOperatorMayNotTouch(t *testing.T) {
	p := remediationPlan("operated", "ann")
	mustCreate(t, judge, p)
	operator := mustBe(t, olga.user, olga.groups...)
	for name, o := range map[string]client.Object{"a policy": remediationPolicy("operated"), "a ledger": remediationLedger("operated"), "a Baseline": baseline("operated")} {
		t.Run(name, func(t *testing.T) {
			err := operator.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`)))
			assertAnswer(t, err, "cannot patch resource")
		})
	}
}
