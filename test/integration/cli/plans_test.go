// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// plan makes a stored plan for one Deployment.
func (f fixture) plan(name string) *v1alpha1.RemediationPlan {
	f.t.Helper()
	hash := "pl1:sha256:" + strings.Repeat("a", 64)
	p := &v1alpha1.RemediationPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: v1alpha1.RemediationPlanSpec{Plan: v1alpha1.PlannedRemediation{
			Policy:          v1alpha1.PlanPolicy{Name: "production", UID: "uid-of-the-policy", Generation: 1, Digest: "sha256:digest"},
			EnvironmentName: "production", Trigger: v1alpha1.TriggerManual, Strategy: v1alpha1.StrategyRolling,
			InitiatedBy: "system:auto", Requester: "admin", CorrelationID: "c-1",
			DeadlineTime: metav1.NewTime(time.Now().Add(time.Hour)).Rfc3339Copy(),
			Targets: []v1alpha1.PlanTarget{{
				BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				BaselineName:   "deployments.apps.web", UID: "uid-of-web", DriftedHash: hash, DesiredHash: hash,
				Revision: "deployments.apps.web-1", RevisionHash: hash, Paths: []string{"/spec/replicas"}, Action: v1alpha1.ActionReconcile,
				Severity:  v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 70, First: v1alpha1.SeverityHigh, Urgency: v1alpha1.UrgencyNormal},
				DriftType: v1alpha1.DriftScale, FirstSeenTime: metav1.Now().Rfc3339Copy(),
			}},
			Batches: []v1alpha1.PlanBatch{{Order: 0, Steps: []int32{0}, RequiresHealthCheck: v1alpha1.Enabled}},
		}},
	}
	must(f.t, kube.Create(f.t.Context(), p))
	return p
}

// executor answers what is asked of the plans of one namespace, as the real one
// does: a paused plan is Paused, a canceled one Canceled, an executed or resumed
// one runs; until then they wait for somebody. It ends with the test.
func executor(t *testing.T, namespace string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watcher, err := kube.Watch(ctx, &v1alpha1.RemediationPlanList{}, client.InNamespace(namespace))
	must(t, err)
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		watcher.Stop()
		<-done
	})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			p, ok := event.Object.(*v1alpha1.RemediationPlan)
			if !ok {
				continue
			}
			phase := map[v1alpha1.PlanVerb]v1alpha1.PlanPhase{
				"": v1alpha1.PlanDeferred, v1alpha1.PlanPause: v1alpha1.PlanPaused, v1alpha1.PlanCancel: v1alpha1.PlanCanceled, v1alpha1.PlanExecute: v1alpha1.PlanRunning,
			}[p.Spec.Control.Verb]
			if p.Status.Phase == phase && p.Status.ObservedGeneration == p.Generation {
				continue
			}
			p.Status.Phase, p.Status.Holder, p.Status.Epoch, p.Status.ObservedGeneration = phase, "executor-0", 1, p.Generation
			p.Status.DeferralReason = ""
			if phase == v1alpha1.PlanDeferred {
				p.Status.DeferralReason = "it waits for a person to execute it"
			}
			if err := kube.Status().Update(ctx, p); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				t.Errorf("answering a plan: %v", err)
			}
		}
	}()
}

func awaitPhase(t *testing.T, p *v1alpha1.RemediationPlan, phase v1alpha1.PlanPhase) {
	t.Helper()
	poll.True(t, patience, p.Name+" is "+string(phase), func() bool {
		current := &v1alpha1.RemediationPlan{}
		return kube.Get(t.Context(), client.ObjectKeyFromObject(p), current) == nil && current.Status.Phase == phase
	})
}

func TestPlan_AUserSteersItAndIsNamed(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	plan := f.plan("p")
	executor(t, f.namespace)
	awaitPhase(t, plan, v1alpha1.PlanDeferred)
	grant(t, f.namespace, "alice", rule("plumbline.dev", "get,list,watch,patch", "remediationplans"), rule("plumbline.dev", "get,list", "baselines"))
	steps := []struct {
		args   []string
		config string
		stdout string
		want   v1alpha1.PlanControl
	}{
		{[]string{"execute", "p", "--reason", "agreed"}, alice, "p executed: Running\n", v1alpha1.PlanControl{Verb: v1alpha1.PlanExecute, RequestedBy: "alice", Reason: "agreed"}},
		{[]string{"pause", "p"}, kubeconfig, "p paused\n", v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "admin"}},
		{[]string{"resume", "p"}, alice, "p resumed; it waits: it waits for a person to execute it\n", v1alpha1.PlanControl{RequestedBy: "alice"}},
		{[]string{"cancel", "p", "--yes", "--as", "carol", "--as-group", "system:masters"}, kubeconfig, "p canceled\n", v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "carol"}},
		{[]string{"cancel", "p", "--yes"}, alice, "p is canceled already\n", v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "carol"}},
	}
	for _, step := range steps {
		got := plumbline(t.Context(), step.config, f.namespace, "", append([]string{"plan"}, step.args...)...)
		if got.Code != 0 || got.Stdout != f.namespace+"/"+step.stdout {
			t.Fatalf("%q gave %+v, want %q", step.args, got, step.stdout)
		}
		current := &v1alpha1.RemediationPlan{}
		must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(plan), current))
		if diff := cmp.Diff(step.want, current.Spec.Control); diff != "" {
			t.Errorf("%q stored (-want +got):\n%s", step.args, diff)
		}
	}
	got := plumbline(t.Context(), alice, f.namespace, "", "plan", "pause", "p")
	if got.Code != 1 || !strings.Contains(got.Stderr, "was not paused: it has ended as Canceled") {
		t.Errorf("pausing what has ended gave %+v", got)
	}
}

func TestPlan_WhoMayNotIsToldSo(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.plan("p")
	grant(t, f.namespace, "alice", rule("plumbline.dev", "get,list", "remediationplans", "baselines"))
	cases := map[string]struct {
		args []string
		want string
	}{
		"who may only look":         {[]string{"plan", "cancel", "p", "--yes"}, `Error from server (Forbidden): ` + f.namespace + `/p was not canceled: remediationplans.plumbline.dev "p" is forbidden: User "alice" cannot patch resource`},
		"in any namespace":          {[]string{"plan", "list", "-A"}, `remediationplans.plumbline.dev is forbidden: User "alice" cannot list resource "remediationplans" in API group "plumbline.dev" at the cluster scope`},
		"policies":                  {[]string{"policy", "list"}, `remediationpolicies.plumbline.dev is forbidden: User "alice" cannot list`},
		"a halt":                    {[]string{"halt", "production", "--reason", "x"}, `remediationledgers.plumbline.dev is forbidden: User "alice" cannot list`},
		"what has to be proven":     {[]string{"evidence", "verify", "--evidence", "/nowhere"}, `reading how far the chains go (--offline leaves that out): remediationledgers.plumbline.dev is forbidden: User "alice" cannot list resource "remediationledgers" in API group "plumbline.dev" in the namespace "plumbline-system"`},
		"a check, which is a write": {[]string{"check", "--all"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := plumbline(t.Context(), alice, f.namespace, "", tc.args...)
			if tc.want == "" { // nothing is guarded there, so there is nothing to refuse
				if got.Code != 0 {
					t.Errorf("got %+v", got)
				}
				return
			}
			if got.Code == 0 || got.Stdout != "" || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
	if got := plumbline(t.Context(), alice, f.namespace, "", "plan", "show", "p"); got.Code != 0 || !strings.Contains(got.Stdout, "an executor: no executor has taken it yet") {
		t.Errorf("who may look saw %+v", got)
	}
}

// policy makes a policy of an Environment that has the test's namespace alone.
func (f fixture) policy(change ...func(*v1alpha1.RemediationPolicySpec)) *v1alpha1.RemediationPolicy {
	f.t.Helper()
	namespaces := metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": f.namespace}}
	environment := &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		Spec:       v1alpha1.EnvironmentSpec{Criticality: v1alpha1.CriticalityProduction, NamespaceSelector: namespaces},
	}
	policy := &v1alpha1.RemediationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		Spec: v1alpha1.RemediationPolicySpec{
			EnvironmentName: f.namespace, Trigger: v1alpha1.TriggerImmediate, Action: v1alpha1.ActionReconcile, MinimumSeverity: v1alpha1.SeverityLow,
		},
	}
	for _, c := range change {
		c(&policy.Spec)
	}
	for _, object := range []client.Object{environment, policy} {
		must(f.t, kube.Create(f.t.Context(), object))
		f.t.Cleanup(func() { must(f.t, client.IgnoreNotFound(kube.Delete(context.WithoutCancel(f.t.Context()), object))) })
	}
	return policy
}

func TestPolicy_IsActivatedWithTheUsersNameAndGroups(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	policy := f.policy()
	read := func() *v1alpha1.RemediationPolicySpec {
		current := &v1alpha1.RemediationPolicy{}
		must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(policy), current))
		return &current.Spec
	}
	dan := []string{"--as", "dan", "--as-group", "sre", "--as-group", "system:masters", "--wait=false"}
	got := plumbline(t.Context(), kubeconfig, f.namespace, "", append([]string{"policy", "activate", policy.Name}, dan...)...)
	if got.Code != 1 || read().Mode != v1alpha1.PolicyModeObserveOnly || !strings.Contains(got.Stderr, "use --yes") {
		t.Fatalf("without a confirmation: %+v, %s", got, read().Mode)
	}
	got = plumbline(t.Context(), kubeconfig, f.namespace, "", append([]string{"policy", "activate", policy.Name, "--yes", "--group", "sre"}, dan...)...)
	if spec := read(); got.Code != 0 || spec.Mode != v1alpha1.PolicyModeActive || spec.RequestedBy != "dan" || !cmp.Equal(spec.RequestedByGroups, []string{"sre"}) {
		t.Fatalf("got %+v, and stored %s by %s, %v", got, spec.Mode, spec.RequestedBy, spec.RequestedByGroups)
	}
	got = plumbline(t.Context(), kubeconfig, f.namespace, "", "policy", "deactivate", policy.Name, "--wait=false")
	if spec := read(); got.Code != 0 || spec.Mode != v1alpha1.PolicyModeObserveOnly || spec.RequestedBy != "admin" || len(spec.RequestedByGroups) != 0 {
		t.Fatalf("got %+v, and stored %s by %s, %v", got, spec.Mode, spec.RequestedBy, spec.RequestedByGroups)
	}
}

func TestHalt_IsWrittenIntoTheLedger(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	ledger := &v1alpha1.RemediationLedger{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "production"}, Spec: v1alpha1.RemediationLedgerSpec{Scope: "Environment"},
	}
	must(t, kube.Create(t.Context(), ledger))
	t.Cleanup(func() { must(t, kube.Delete(context.WithoutCancel(t.Context()), ledger)) })
	for _, step := range []struct {
		args []string
		want *v1alpha1.LedgerHalt
	}{
		{[]string{"halt", "production", "--reason", "INC-9", "--dry-run=server"}, nil},
		{[]string{"halt", "production", "--reason", "INC-9"}, &v1alpha1.LedgerHalt{RequestedBy: "admin", Reason: "INC-9"}},
		{[]string{"resume", "production"}, nil},
	} {
		got := plumbline(t.Context(), kubeconfig, "default", "", step.args...)
		must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(ledger), ledger))
		if diff := cmp.Diff(step.want, ledger.Spec.Halt); got.Code != 0 || diff != "" {
			t.Errorf("%q gave %+v, and stored (-want +got):\n%s", step.args, got, diff)
		}
	}
}

func TestCheck_AsksTheAssessorAndShowsItsAnswer(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.deployment("web", "nginx:1.27")
	baseline := f.authorize("web", "ci", 1)
	ctx, cancel := context.WithCancel(t.Context())
	watcher, err := kube.Watch(ctx, &v1alpha1.BaselineList{}, client.InNamespace(f.namespace))
	must(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); watcher.Stop(); <-done })
	go func() { // answers as the assessor does
		defer close(done)
		for event := range watcher.ResultChan() {
			b, ok := event.Object.(*v1alpha1.Baseline)
			if !ok || b.Annotations[v1alpha1.AnnotationCheckRequested] == b.Status.CheckRequested {
				continue
			}
			b.Status.CheckRequested = b.Annotations[v1alpha1.AnnotationCheckRequested]
			b.Status.State = v1alpha1.StateMissing
			if err := kube.Status().Update(ctx, b); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				t.Errorf("answering a check: %v", err)
			}
		}
	}()
	got := plumbline(t.Context(), kubeconfig, f.namespace, "", "check", "deploy/web", "--exit-code")
	if got.Code != 1 || !strings.Contains(got.Stdout, "deployment.apps/web     Missing") {
		t.Errorf("got %+v", got)
	}
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(baseline), baseline))
	if baseline.Status.CheckRequested == "" || baseline.Annotations[v1alpha1.AnnotationCheckRequested] != baseline.Status.CheckRequested {
		t.Errorf("asked %q, answered %q", baseline.Annotations[v1alpha1.AnnotationCheckRequested], baseline.Status.CheckRequested)
	}
}

// grantEverywhere gives a user rights in the whole cluster, for one test.
func grantEverywhere(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	name := "cli-test-" + user
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", APIGroup: rbacv1.GroupName, Name: name},
		},
	} {
		must(t, kube.Create(t.Context(), object))
		t.Cleanup(func() { must(t, kube.Delete(context.WithoutCancel(t.Context()), object)) })
	}
}
