// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// An Environment became less critical while a plan was under way, and the plan went on to a
// drift of which the policy would only have told people.
func TestADriftThatIsMildByNowIsNotPutBack(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	var gate remediation.Gate
	w.RolloutsThrough(&gate)
	w.UnderGuard()
	w.Drifted("web", "api")
	policy := w.policy(selectsNothing, func(s *v1alpha1.RemediationPolicySpec) { s.MinimumSeverity = v1alpha1.SeverityHigh })
	plan := w.plan(policy, "web", "api")
	gate.Shut()
	defer gate.Open()
	startExecutor(t, newEvidence(t))
	w.UntilPlan(plan, "the first target is written", hasWritten)
	w.becomes(v1alpha1.CriticalityDevelopment)
	w.Until("api", "the severity of the second drift fell", func(b *v1alpha1.Baseline) error {
		if s := b.Status.Severity; s == nil || s.Level == v1alpha1.SeverityCritical || s.Level == v1alpha1.SeverityHigh {
			return fmt.Errorf("the severity is %+v", s)
		}
		return nil
	})
	gate.Open()
	plan = w.Ended(plan)
	first, second := plan.Status.Steps[0], plan.Status.Steps[1]
	if plan.Status.Phase != v1alpha1.PlanPartialSuccess || first.State != v1alpha1.StepVerified || second.Reason != v1alpha1.ReasonBelowSeverity {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	if imageOf(w.Live("api")) == guarded.Image {
		t.Error("the executor put back a drift that is milder than the policy wants")
	}
}

// becomes changes the criticality of the Environment of the world.
func (w *world) becomes(criticality v1alpha1.Criticality) {
	w.t.Helper()
	e := &v1alpha1.Environment{}
	w.Must(admin.Get(w.t.Context(), client.ObjectKey{Name: w.Name}, e))
	before := client.MergeFrom(e.DeepCopy())
	e.Spec.Criticality = criticality
	w.Must(admin.Patch(w.t.Context(), e, before))
}
