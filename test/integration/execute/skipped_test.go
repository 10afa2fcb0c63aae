// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// escalations counts the warnings of a policy that a drift needs a person.
func (w *world) escalations(policy *v1alpha1.RemediationPolicy) int {
	w.t.Helper()
	var list eventsv1.EventList
	w.Must(admin.List(w.t.Context(), &list))
	n := 0
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.UID == policy.UID && e.Reason == "RemediationEscalated" && e.Type == "Warning" {
			n++
		}
	}
	return n
}

// D1 of the review of remediation: with the chart's defaults and without the RoleBinding
// of the namespace, the policy made 132 plans and 394 records a minute, and told nobody.
func TestAMissingRoleBindingMakesNoPlanAndIsToldUntilItIsThere(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	w.Must(admin.Delete(t.Context(), w.Binding()))
	startExecutor(t, newEvidence(t))
	policy := w.policy(busyWriters)
	w.untilWaits(policy, "1 NotAllowed (the executor may not get deployments in namespace "+w.Name+": bind the ClusterRole plumbline-executor-targets there)")
	w.Eventually("a person is told", func() error {
		if n := w.escalations(policy); n != 1 {
			return fmt.Errorf("%d warnings", n)
		}
		return nil
	})
	// Each change of the drift has the policy looked at again.
	w.SetEnv(mallory, "web", "MORE", "of it")
	w.untilPolicy(policy, "the drift is told anew", func(s *v1alpha1.RemediationPolicyStatus) bool { return strings.Contains(s.WaitingFor, "1 NotAllowed") })
	if n := len(w.plans()); n != 0 {
		t.Errorf("%d plans were made", n)
	}
	w.Must(admin.Create(t.Context(), w.Binding()))
	w.succeeded()
}

// refuseImage has an admission policy refuse an image in the world's namespace, as one of
// another product may.
func (w *world) refuseImage(image string) {
	w.t.Helper()
	name := "refuse-" + w.Name
	fail, deployments := admissionv1.Fail, admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: deployments}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("object.spec.template.spec.containers.all(c, c.image != %q)", image), Message: "this image has a vulnerability",
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.Name}}},
		},
	}
	for _, o := range []client.Object{policy, binding} {
		w.Must(admin.Create(w.t.Context(), o))
		w.t.Cleanup(func() { w.Must(admin.Delete(context.WithoutCancel(w.t.Context()), o)) })
	}
	w.Eventually("the image is refused", func() error {
		err := w.As(ci).Patch(w.t.Context(), w.Named("web"), guarded.ImagePatch(image), client.DryRunAll)
		switch {
		case err == nil:
			return errors.New("it is accepted")
		case apierrors.IsInvalid(err):
			return nil
		}
		return err
	})
}

// D1 of the review of remediation: the same, where another admission refuses what was
// authorized.
func TestPlansThatAreSkippedComeToAnEndAndAreTold(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	w.refuseImage(guarded.Image)
	records := newEvidence(t)
	startExecutor(t, records)
	policy := w.policy(busyWriters)
	w.untilWaits(policy, "1 TooManyAttempts")
	w.untilWaits(policy, "this image has a vulnerability")
	plans := w.plans()
	if len(plans) != planner.MaxAttempts {
		t.Errorf("%d plans were made", len(plans))
	}
	for i := range plans {
		p := &plans[i]
		if p.Status.Phase != v1alpha1.PlanSkipped || p.Status.Steps[0].Reason != v1alpha1.ReasonRefused || !strings.Contains(p.Status.Steps[0].Message, "this image has a vulnerability") {
			t.Errorf("plan %s is %s", p.Name, remediation.Describe(p))
		}
		w.proven(records, p)
	}
	w.Eventually("a person is told of each plan, and that no further one is made", func() error {
		var list eventsv1.EventList
		if err := admin.List(t.Context(), &list, client.InNamespace(w.Name)); err != nil {
			return err
		}
		n := 0
		for i := range list.Items {
			if e := &list.Items[i]; e.Reason == "PlanSkipped" && e.Type == "Warning" {
				n++
			}
		}
		if escalated := w.escalations(policy); n != planner.MaxAttempts || escalated != 1 {
			return fmt.Errorf("%d warnings of plans, %d of the policy", n, escalated)
		}
		return nil
	})
}

// immutable has somebody make web again with another selector, which no update changes.
func (w *world) immutable() {
	w.t.Helper()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Delete(mallory, "web")
	d := guarded.Deployment(w.Name, "web")
	d.Spec.Selector.MatchLabels["track"], d.Spec.Template.Labels["track"] = "mallory", "mallory"
	w.Must(w.As(mallory).Create(w.t.Context(), d))
	w.Until("web", "the drift is told", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateDrifted || b.Status.Severity == nil || b.Status.Observed.UID != string(d.UID) {
			return fmt.Errorf("it is %s", guarded.Describe(b))
		}
		return nil
	})
}

// The same, where the API server lets no update change the field that drifted. The policy makes
// three plans within seconds, and then a person reads why none of them helped.
func TestADriftOfAnImmutableFieldIsTriedAFewTimesAndToldInTheWordsOfTheAPIServer(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.immutable()
	startExecutor(t, newEvidence(t))
	policy := w.policy(busyWriters)
	w.untilWaits(policy, "1 TooManyAttempts")
	w.untilWaits(policy, "field is immutable")
	plans := w.plans()
	if len(plans) != planner.MaxAttempts {
		t.Errorf("%d plans were made", len(plans))
	}
	for i := range plans {
		if p := &plans[i]; p.Status.Phase != v1alpha1.PlanSkipped || p.Status.Steps[0].Reason != v1alpha1.ReasonRefused {
			t.Errorf("plan %s is %s", p.Name, remediation.Describe(p))
		}
	}
	w.Eventually("a person is told once", func() error {
		if n := w.escalations(policy); n != 1 {
			return fmt.Errorf("%d warnings", n)
		}
		return nil
	})
}
