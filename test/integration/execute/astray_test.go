// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// The limits of one Environment say nothing about another one's objects.
func TestAPlanOutsideOfItsPolicysEnvironmentWritesNothing(t *testing.T) {
	startAssessor(t)
	w, other := newWorld(t), newWorld(t)
	w.UnderGuard()
	w.Drifted("web")
	policy, foreign := w.policy(), other.policy()
	startExecutor(t, newEvidence(t))
	for name, tc := range map[string]struct {
		plan *v1alpha1.RemediationPlan
		want string
	}{
		"it names another one than its policy": {
			plan: w.plan(policy, func(p *v1alpha1.PlannedRemediation) { p.EnvironmentName = other.environment }, "web"),
			want: "it is for Environment " + other.environment + ", and its policy for " + w.environment,
		},
		"its namespace belongs to another one": {
			plan: w.plan(foreign, func(p *v1alpha1.PlannedRemediation) { p.EnvironmentName = other.environment }, "web"),
			want: `its namespace belongs to Environment "` + w.environment + `", and its policy is for ` + other.environment,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := w.Ended(tc.plan)
			if plan.Status.Phase != v1alpha1.PlanCanceled || !strings.Contains(remediation.Describe(plan), tc.want) {
				t.Errorf("the plan is %s, want Canceled because %s", remediation.Describe(plan), tc.want)
			}
		})
	}
	if got := imageOf(w.Live("web")); got == guarded.Image {
		t.Error("the target was written")
	}
}

// A namespace that goes over to another Environment while its plan waits takes the
// plan's reason away.
func TestANamespaceThatChangesItsEnvironmentEndsItsPlans(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard()
	w.Drifted("web")
	startExecutor(t, newEvidence(t))
	plan := w.plan(w.policy(), func(p *v1alpha1.PlannedRemediation) { p.Trigger = v1alpha1.TriggerManual }, "web")
	w.UntilPlan(plan, "it waits for a person", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Phase == v1alpha1.PlanDeferred })
	var e v1alpha1.Environment
	w.Must(admin.Get(t.Context(), types.NamespacedName{Name: w.environment}, &e))
	before := e.DeepCopy()
	e.Spec.NamespaceSelector = metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "elsewhere"}}
	w.Must(admin.Patch(t.Context(), &e, client.MergeFrom(before)))
	if plan = w.Ended(plan); plan.Status.Phase != v1alpha1.PlanCanceled || imageOf(w.Live("web")) == guarded.Image {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
}
