// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// guard guards the Deployments of the namespace.
func (f fixture) guard() {
	f.t.Helper()
	must(f.t, kube.Create(f.t.Context(), &v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "apps"},
		Spec:       v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}},
	}))
}

// driftedUnderGuard is drifted with all that the assessor records.
func (f fixture) driftedUnderGuard(name string) *v1alpha1.Baseline {
	f.t.Helper()
	baseline := f.drifted(name)
	// A trusted writer of a moment ago would be left to finish.
	baseline.Spec.Authorized.AuthorizationTime = metav1.NewTime(time.Now().Add(-2 * time.Hour).Truncate(time.Second))
	must(f.t, kube.Update(f.t.Context(), baseline))
	d := &appsv1.Deployment{}
	must(f.t, kube.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, d))
	s := &baseline.Status
	s.Guards = []string{"SpecGuard/apps"}
	s.Observed.UID, s.Observed.FullHash = string(d.UID), f.hash(name)
	s.FirstSeenTime = &metav1.Time{Time: time.Now().Add(-time.Hour).Truncate(time.Second)}
	s.Severity = &v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 70, First: v1alpha1.SeverityHigh, Urgency: v1alpha1.UrgencyNormal}
	must(f.t, kube.Status().Update(f.t.Context(), baseline))
	return baseline
}

type previewed struct {
	Eligible int
	Plans    []struct {
		Steps []struct {
			Object, Outcome, Message string
			Changes                  []struct{ Path, Before, After string }
		}
	}
	LeftOut []struct{ Object, Reason string }
}

func (f fixture) preview(args ...string) (previewed, answer) {
	f.t.Helper()
	got := plumbline(f.t.Context(), kubeconfig, f.namespace, "", append([]string{"plan", "preview", f.namespace, "-o", "json"}, args...)...)
	var p previewed
	if got.Code == 0 {
		must(f.t, json.Unmarshal([]byte(got.Stdout), &p))
	}
	return p, got
}

func TestPreview_TriesTheVeryWriteAndStoresNothing(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.guard()
	f.driftedUnderGuard("web")
	f.policy()
	version := func() string {
		d := &appsv1.Deployment{}
		must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "web"}, d))
		return d.ResourceVersion
	}
	before := version()
	p, got := f.preview()
	if got.Code != 0 || len(p.Plans) != 1 || len(p.Plans[0].Steps) != 1 {
		t.Fatalf("got %+v", got)
	}
	step := p.Plans[0].Steps[0]
	if step.Outcome != "Converges" || len(step.Changes) != 1 || step.Changes[0].Path != "/spec/replicas" || step.Changes[0].Before != "5" || step.Changes[0].After != "1" {
		t.Errorf("the dry run came to %+v", step)
	}
	if after := version(); after != before {
		t.Errorf("a preview stored something: version %s became %s", before, after)
	}
	text := plumbline(t.Context(), kubeconfig, f.namespace, "", "plan", "preview", f.namespace)
	for _, want := range []string{"1 plan for 1 object; 1 drifted, of 1 selected.", "✓ 0  deployment.apps/web  Reconcile  leads to the authorized state", "/spec/replicas: 5 → 1", "The write would lead to the authorized state. The dry run stored no object."} {
		if !strings.Contains(text.Stdout, want) {
			t.Errorf("%q is missing in\n%s%s", want, text.Stdout, text.Stderr)
		}
	}
}

func TestExplain_TellsEveryGateAndTheVerdict(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.guard()
	f.driftedUnderGuard("web")
	calm := f.deployment("calm", "nginx:1.27")
	f.authorize("calm", "ci", 1)
	calm.Status = appsv1.DeploymentStatus{
		ObservedGeneration: calm.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	must(t, kube.Status().Update(t.Context(), calm)) // as its controller would
	policy := f.policy()
	cases := map[string]struct {
		args   []string
		change func(*v1alpha1.RemediationPolicySpec)
		want   []string
	}{
		"a policy that only observes": {
			args: []string{policy.Name}, change: func(*v1alpha1.RemediationPolicySpec) {},
			want: []string{"✗ Mode ", "ObserveOnly, wants Active; the policy only observes", "✓ Severity ", "=> It is not remediated without a change: the policy only observes"},
		},
		"an active one": {
			args:   []string{policy.Name, "deploy/web"},
			change: func(s *v1alpha1.RemediationPolicySpec) { s.Mode, s.RequestedBy = v1alpha1.PolicyModeActive, "admin" },
			want:   []string{"✓ Mode ", "Ledger " + f.namespace + "\n", "✓ MaxPerHour ", "0 of 10 in the last hour", "? unknown here, as options of the executor: CapConcurrent, CapPerHour, CapPerDay\n", "1 of 1 healthy", "=> It would be remediated now."},
		},
		"one that waits until the drift is older": {
			args: []string{"deploy/web", "deploy/calm"},
			change: func(s *v1alpha1.RemediationPolicySpec) {
				s.MinimumDriftAge = &metav1.Duration{Duration: 48 * time.Hour}
			},
			want: []string{"✗ Age ", "=> It would be remediated at ", "(in 4", "deployment.apps/calm: it is in sync: there is no drift to remediate"},
		},
	}
	for _, name := range []string{"a policy that only observes", "an active one", "one that waits until the drift is older"} { // each goes on from the one before
		t.Run(name, func(t *testing.T) {
			tc := cases[name]
			must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(policy), policy))
			tc.change(&policy.Spec)
			must(t, kube.Update(t.Context(), policy))
			got := plumbline(t.Context(), kubeconfig, f.namespace, "", append([]string{"policy", "explain"}, tc.args...)...)
			if got.Code != 0 {
				t.Fatalf("got %+v", got)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Stdout, want) {
					t.Errorf("%q is missing in\n%s", want, got.Stdout)
				}
			}
		})
	}
}

func TestPreview_TellsWhoRefuses(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.guard()
	baseline := f.driftedUnderGuard("web")
	f.policy()

	t.Run("a person without the right to write", func(t *testing.T) {
		grantEverywhere(t, "erin",
			rule("plumbline.dev", "get,list", "*"), rule("", "get,list", "namespaces"), rule("apps", "get,list", "deployments"))
		var p previewed
		poll.True(t, patience, "erin's rights are in force", func() bool {
			var got answer
			p, got = f.preview("--as", "erin")
			return got.Code == 0 && len(p.Plans) == 1
		})
		step := p.Plans[0].Steps[0]
		if step.Outcome != "Forbidden" || !strings.Contains(step.Message, `User "erin" cannot update resource "deployments"`) {
			t.Errorf("got %+v", step)
		}
	})
	t.Run("an admission policy", func(t *testing.T) {
		refuseOneReplica(t, f.namespace)
		var p previewed
		poll.True(t, patience, "the policy is in force", func() bool {
			p, _ = f.preview()
			return len(p.Plans) == 1 && p.Plans[0].Steps[0].Outcome != "Converges"
		})
		step := p.Plans[0].Steps[0]
		if step.Outcome != "Refused" || !strings.Contains(step.Message, "at least two replicas, please") {
			t.Errorf("got %+v", step)
		}
	})
	t.Run("nobody, but it has changed since", func(t *testing.T) {
		f.scale("web", 7)
		p, got := f.preview()
		if got.Code != 0 || len(p.LeftOut) != 1 || p.LeftOut[0].Reason != "StateUnknown" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a revision that is not what it was", func(t *testing.T) {
		f.scale("web", 5)
		revision := &v1alpha1.BaselineRevision{}
		must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: baseline.Spec.Authorized.Revision}, revision))
		must(t, kube.Delete(t.Context(), revision))
		p, got := f.preview()
		if got.Code != 0 || len(p.Plans) != 1 || p.Plans[0].Steps[0].Outcome == "Converges" {
			t.Errorf("got %+v", got)
		}
	})
}

// refuseOneReplica has the API server refuse what the preview would write.
func refuseOneReplica(t *testing.T, namespace string) {
	t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: "object.spec.replicas > 1", Message: "at least two replicas, please"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	for _, object := range []client.Object{policy, binding} {
		must(t, kube.Create(t.Context(), object))
		t.Cleanup(func() { must(t, kube.Delete(context.WithoutCancel(t.Context()), object)) })
	}
}
