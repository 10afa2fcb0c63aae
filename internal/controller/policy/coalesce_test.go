// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/lag"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// countStatusWrites counts what is stored of the status of the policy from now on; refuse is
// the answer of the API server while it is not nil.
func (b *bench) countStatusWrites(refuse *error) *int {
	stored := new(int)
	b.r.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, resource string, o client.Object, options ...client.SubResourceUpdateOption) error {
			if *refuse != nil {
				return *refuse
			}
			*stored++
			return c.SubResource(resource).Update(ctx, o, options...)
		},
	})
	return stored
}

func (b *bench) setState(name string, state v1alpha1.DriftState) {
	b.Helper()
	baseline := &v1alpha1.Baseline{}
	key := client.ObjectKey{Namespace: "shop", Name: b.BaselineName(name)}
	if err := b.client.Get(b.Context(), key, baseline); err != nil {
		b.Fatal(err)
	}
	baseline.Status.State = state
	if err := b.client.Status().Update(b.Context(), baseline); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) endPlans() {
	b.Helper()
	for _, plan := range b.plans() {
		plan.Status.Phase, plan.Status.CompletionTime = v1alpha1.PlanSucceeded, &metav1.Time{Time: b.clock.Now()}
		if err := b.client.Status().Update(b.Context(), &plan); err != nil {
			b.Fatal(err)
		}
	}
}

// A repair moves the counts when its plan is made, when its plan is known, when the object is
// back, and when the plan ends.
func TestTheStatusOfAPolicyIsWrittenOnceForARepairOfASecond(t *testing.T) {
	b := newBench(t)
	b.look() // the first status is stored at once
	var refuse error
	stored := b.countStatusWrites(&refuse)
	for _, happens := range []func(){func() {}, func() { b.setState("web", v1alpha1.StateInSync) }, b.endPlans} {
		happens()
		if again := b.look().RequeueAfter; again <= 0 || again > lag.Most {
			t.Errorf("the policy is looked at again after %s", again)
		}
		b.clock.SetTime(b.clock.Now().Add(lag.Most / 4))
	}
	if *stored != 0 {
		t.Errorf("the status was stored %d times within a second", *stored)
	}
	b.clock.SetTime(epoch.Add(lag.Most))
	refuse = errors.New("refused")
	if _, err := b.tryLook(); !errors.Is(err, refuse) {
		t.Errorf("the error is %v", err)
	}
	refuse = nil
	b.look()
	if got := b.status(); *stored != 1 || got.Targets != (v1alpha1.PolicyTargets{Selected: 3, Healthy: 3}) || got.WaitingFor != "" {
		t.Errorf("the status was stored %d times, and is %+v", *stored, got)
	}
	if b.look(); *stored != 1 {
		t.Errorf("a status without news was stored")
	}
}

// What no longer differs is no lag any more: the next change has a second of its own.
func TestCountsThatMoveBackAreNotWritten(t *testing.T) {
	b := newBench(t)
	b.look()
	b.clock.SetTime(epoch.Add(lag.Most))
	b.look()
	b.clock.SetTime(epoch.Add(2 * lag.Most))
	b.look()
	var refuse error
	stored := b.countStatusWrites(&refuse)
	for _, state := range []v1alpha1.DriftState{v1alpha1.StateInSync, v1alpha1.StateDrifted, v1alpha1.StateInSync} {
		b.setState("web", state)
		b.look()
		b.clock.SetTime(b.clock.Now().Add(lag.Most * 2 / 3))
	}
	if *stored != 0 {
		t.Errorf("the status was stored %d times", *stored)
	}
}

func TestOnlyCountsOfAPolicyWait(t *testing.T) {
	safety := &v1alpha1.RemediationSafety{MinHealthyPercent: 75}
	stored := v1alpha1.RemediationPolicyStatus{
		Targets: v1alpha1.PolicyTargets{Selected: 10, Drifted: 1, Eligible: 1, Healthy: 8, Unhealthy: 1}, Digest: "a",
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Active", Message: "1 of 10"}},
	}
	tests := map[string]struct {
		change func(*v1alpha1.RemediationPolicyStatus)
		waits  bool
	}{
		"a count of drift waits":                       {func(s *v1alpha1.RemediationPolicyStatus) { s.Targets.Drifted, s.Targets.Eligible = 0, 0 }, true},
		"the name of a plan waits":                     {func(s *v1alpha1.RemediationPolicyStatus) { s.LastPlanName = "shop/x" }, true},
		"what the policy waits for waits":              {func(s *v1alpha1.RemediationPolicyStatus) { s.WaitingFor = "1 UnderWay" }, true},
		"the next look waits":                          {func(s *v1alpha1.RemediationPolicyStatus) { s.NextEvaluationTime = &metav1.Time{} }, true},
		"the text of a condition waits":                {func(s *v1alpha1.RemediationPolicyStatus) { s.Conditions[0].Message = "0 of 10" }, true},
		"one healthy object more waits":                {func(s *v1alpha1.RemediationPolicyStatus) { s.Targets.Healthy = 9 }, true},
		"too few healthy objects do not wait":          {func(s *v1alpha1.RemediationPolicyStatus) { s.Targets.Healthy = 2 }, false},
		"an unhealthy object does not wait":            {func(s *v1alpha1.RemediationPolicyStatus) { s.Targets.Unhealthy = 0 }, false},
		"the number of selected objects does not wait": {func(s *v1alpha1.RemediationPolicyStatus) { s.Targets.Selected = 11 }, false},
		"another policy does not wait":                 {func(s *v1alpha1.RemediationPolicyStatus) { s.Digest = "b" }, false},
		"another generation does not wait":             {func(s *v1alpha1.RemediationPolicyStatus) { s.ObservedGeneration = 7 }, false},
		"another reason of a condition does not wait":  {func(s *v1alpha1.RemediationPolicyStatus) { s.Conditions[0].Reason = "Halted" }, false},
		"a condition that ends does not wait":          {func(s *v1alpha1.RemediationPolicyStatus) { s.Conditions = nil }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			next := stored.DeepCopy()
			tc.change(next)
			if diff := cmp.Diff(tc.waits, sameButCounts(safety, next, &stored)); diff != "" {
				t.Errorf("it waits (-want +got):\n%s", diff)
			}
		})
	}
}
