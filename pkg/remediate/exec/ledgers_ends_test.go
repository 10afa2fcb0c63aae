// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// A failure of a step counts for the breaker of its policy, which only the ledger of
// the Environment has.
func TestAFailureCountsForTheBreakerOfItsPolicy(t *testing.T) {
	w := newWorld(t)
	w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Safety.CircuitBreaker.FailureThreshold = 1 })
	r := looked(w)
	r.reserve(t.Context(), 0)
	if err := r.settle(t.Context(), 0, v1alpha1.LedgerFailed); err != nil {
		t.Fatal(err)
	}
	own, all := w.readLedgerNow("production").Status, w.readLedgerNow(ClusterLedger).Status
	if ledger.Breaker(&own, policyUID) != v1alpha1.BreakerOpen || len(all.Breakers) > 0 {
		t.Errorf("breakers are %+v, and in the cluster %+v", own.Breakers, all.Breakers)
	}
}

// D3 of the review of remediation: a failure that was settled by a run that could not
// read the policy was not counted.
func TestAFailureCountsAlthoughThePolicyCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Safety.CircuitBreaker.FailureThreshold = 1 })
	looked(w).reserve(t.Context(), 0)
	if err := w.open().settle(t.Context(), 0, v1alpha1.LedgerFailed); err != nil {
		t.Fatal(err)
	}
	if own := w.readLedgerNow("production").Status; ledger.Breaker(&own, policyUID) != v1alpha1.BreakerOpen {
		t.Errorf("breakers are %+v", own.Breakers)
	}
}

// D2 of the review of remediation: one deleted namespace left the breaker half open.
func TestAProbeWhosePlanIsGoneTurnsTheBreaker(t *testing.T) {
	w := newWorld(t)
	r := looked(w)
	if err := w.change(t.Context(), "production", func(s *ledger.Status) *ledger.Status {
		next := s.DeepCopy()
		opened := metav1.NewTime(epoch.Add(-time.Hour))
		next.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: policyUID, State: v1alpha1.BreakerOpen, Failures: 3, LastOpenTime: &opened}}
		return next
	}); err != nil {
		t.Fatal(err)
	}
	if place := r.reserve(t.Context(), 0); place.Granted != protocol.Yes {
		t.Fatalf("no probe: %+v", place)
	}
	w.remove(w.plan)
	w.clock.now = epoch.Add(time.Hour)
	if err := w.ClearLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	own := w.readLedgerNow("production").Status
	if b := own.Breakers[0]; b.State != v1alpha1.BreakerOpen || !b.LastOpenTime.Time.Equal(w.clock.now) {
		t.Errorf("the breaker is %+v", b)
	}
}

func TestEntriesThatNoOtherExecutorEndsAreCleared(t *testing.T) {
	const open, older = "open", 3 * time.Minute
	step := func(state v1alpha1.StepState, settled v1alpha1.Toggle) *v1alpha1.PlanStep {
		return &v1alpha1.PlanStep{State: state, Settled: settled}
	}
	gone := func(w *world) { w.remove(w.plan) }
	tests := map[string]struct {
		step  *v1alpha1.PlanStep
		world func(*world)
		age   time.Duration
		want  string
		fails bool
	}{
		"of a plan that is gone":       {nil, gone, older, "Failed", false},
		"of a plan that is just gone":  {nil, gone, leftoverAge, "Failed", false},
		"but not at once":              {nil, gone, leftoverAge - time.Second, open, false},
		"of a step that wrote nothing": {step(v1alpha1.StepSkipped, v1alpha1.Enabled), nil, older, "", false},
		"of a step that succeeded":     {step(v1alpha1.StepVerified, v1alpha1.Enabled), nil, older, "Succeeded", false},
		"of a step that failed":        {step(v1alpha1.StepFailed, v1alpha1.Enabled), nil, older, "Failed", false},
		"of a step that was ended": {
			&v1alpha1.PlanStep{State: v1alpha1.StepFailed, Reason: v1alpha1.ReasonStopped, Settled: v1alpha1.Enabled}, nil, older, "Stopped", false,
		},
		"not of a step that is under way":   {step(v1alpha1.StepIntent, ""), nil, older, open, false},
		"not of a step that is to settle":   {step(v1alpha1.StepVerified, ""), nil, older, open, false},
		"not of a plan that cannot be read": {nil, func(w *world) { w.failing("get RemediationPlan", errNetwork) }, older, open, true},
		"not if ledgers cannot be listed":   {nil, func(w *world) { w.failing("list RemediationLedgerList", errNetwork) }, older, open, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := looked(w)
			r.reserve(t.Context(), 0)
			if test.step != nil {
				plan := w.now()
				plan.Status.Steps = []v1alpha1.PlanStep{*test.step}
				if err := w.Client.Status().Update(t.Context(), plan); err != nil {
					t.Fatal(err)
				}
			}
			if test.world != nil {
				test.world(w)
			}
			w.clock.now = epoch.Add(test.age)
			if err := w.ClearLeftovers(t.Context()); (err != nil) != test.fails {
				t.Errorf("got %v", err)
			}
			want := strings.TrimSpace("production-1 uid-web " + test.want)
			if test.want == "" {
				want = ""
			}
			if diff := cmp.Diff(map[string]string{ClusterLedger: want, "production": want}, w.entries()); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnEntryThatHasEndedIsNotEndedAgain(t *testing.T) {
	w := newWorld(t)
	r := looked(w)
	r.reserve(t.Context(), 0)
	if err := r.settle(t.Context(), 0, v1alpha1.LedgerSucceeded); err != nil {
		t.Fatal(err)
	}
	w.remove(w.plan)
	w.clock.now, w.calls = epoch.Add(time.Hour), nil
	reads := 0
	w.fails = func(call, _ string) error {
		if call == "get RemediationPlan" {
			reads++
		}
		return nil
	}
	if err := w.ClearLeftovers(t.Context()); err != nil || reads > 0 || len(w.calls) > 0 {
		t.Errorf("%d plans were read, and written was %v: %v", reads, w.calls, err)
	}
}
