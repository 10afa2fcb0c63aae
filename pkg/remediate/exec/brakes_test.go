// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// D8 of the review of remediation: a plan by hand passed the share of the policy's objects
// that one operation may have.
func TestOneOperationHasTheShareOfTheObjectsThatWereCountedLast(t *testing.T) {
	counted := func(selected int32) func(*v1alpha1.RemediationPolicy) {
		return func(p *v1alpha1.RemediationPolicy) {
			p.Status.Digest, p.Status.Targets.Selected = planner.Digest(&p.Spec), selected
		}
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.RemediationPolicy)
		want   int
	}{
		"a quarter of eleven":                       {counted(11), 2},
		"one of two":                                {counted(2), 1},
		"ten of a hundred":                          {counted(100), 10},
		"ten, while the objects are not counted":    {func(*v1alpha1.RemediationPolicy) {}, 10},
		"ten, when an earlier policy's are counted": {func(p *v1alpha1.RemediationPolicy) { counted(2)(p); p.Status.Digest = "sha256:earlier" }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			w := newScheduledWorld(t)
			w.changePolicy(test.change)
			if got := w.open().look(t.Context()).MaximumTargets; got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// counts has the assessor count the other objects of the policy.
func (w *world) counts(healthy, unhealthy int32) {
	w.Helper()
	w.changePolicy(func(p *v1alpha1.RemediationPolicy) {
		p.Status.Digest = planner.Digest(&p.Spec)
		p.Status.Targets.Healthy, p.Status.Targets.Unhealthy = healthy, unhealthy
	})
}

// newScheduledWorld has a policy that acts from 09:00 to 11:00 UTC.
func newScheduledWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.changePolicy(func(p *v1alpha1.RemediationPolicy) {
		p.Spec.Schedule.AllowedStart, p.Spec.Schedule.AllowedEnd = "09:00", "11:00"
		p.Spec.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "00:00", End: "23:59", TimeZone: "Etc/UTC"}
		w.policy = p
	})
	change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
		p.Spec.Plan.Policy.Digest = planner.Digest(&w.policy.Spec)
	})
	return w
}

func TestEachBrakeIsRead(t *testing.T) {
	for name, test := range brakes {
		t.Run(name, func(t *testing.T) {
			w := newScheduledWorld(t)
			test.put(w)
			r := w.open()
			r.plan.Status.Steps = []v1alpha1.PlanStep{{State: v1alpha1.StepPlanned}}
			if diff := gocmp.Diff(test.reads, r.look(t.Context())); diff != "" {
				t.Errorf("brakes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutABrakeAPlanMayBegin(t *testing.T) {
	w := newScheduledWorld(t)
	want := protocol.Brakes{Known: true, MaximumTargets: 10, ClosesAt: epoch.Add(time.Hour)}
	if diff := gocmp.Diff(want, w.open().look(t.Context())); diff != "" {
		t.Errorf("brakes (-want +got):\n%s", diff)
	}
}

func TestEachBrakeHoldsBackAWriteThatWasGrantedAPlaceBefore(t *testing.T) {
	for name, test := range brakes {
		t.Run(name, func(t *testing.T) {
			w := newScheduledWorld(t)
			w.granted = func() { test.put(w) }
			out := w.carry()
			status := w.now().Status
			got := fmt.Sprintf("%s: %s", status.Phase, cmp.Or(status.EndedReason, status.DeferralReason, out.Why))
			if status.EndedBy != "" {
				got += " (" + status.EndedBy + ")"
			}
			if diff := gocmp.Diff(test.then, got); diff != "" {
				t.Errorf("the plan (-want +got):\n%s", diff)
			}
			if wrote := len(w.targets.stored) > 0; wrote != test.write {
				t.Errorf("stored are %v", w.targets.stored)
			}
			if status.Phase == v1alpha1.PlanCanceled {
				w.leavesNoPlace()
			}
		})
	}
}

// leavesNoPlace checks that no ledger has an entry: the step did not write.
func (w *world) leavesNoPlace() {
	w.Helper()
	for _, name := range []string{ClusterLedger, "production"} {
		if entries := w.readLedgerNow(name).Status.Entries; len(entries) > 0 {
			w.Errorf("ledger %s keeps %+v", name, entries)
		}
	}
}

// A plan that nobody asked for acts with the right of its policy. The API server
// cannot know that of a plan that somebody wrote by hand.
func TestAPlanThatActsWithAnotherRightThanItsPolicyIsHalted(t *testing.T) {
	tests := map[string]struct {
		plan   func(*v1alpha1.PlannedRemediation)
		halted string
	}{
		"the right of the policy":         {func(*v1alpha1.PlannedRemediation) {}, ""},
		"the right of another user":       {func(p *v1alpha1.PlannedRemediation) { p.Requester = "root" }, "it acts with other permissions than its policy has"},
		"more groups than the policy has": {func(p *v1alpha1.PlannedRemediation) { p.RequesterGroups = []string{"sre", "system:masters"} }, "it acts with other permissions than its policy has"},
		"no groups":                       {func(p *v1alpha1.PlannedRemediation) { p.RequesterGroups = nil }, "it acts with other permissions than its policy has"},
		"the right of the person who asked for it": {func(p *v1alpha1.PlannedRemediation) {
			p.InitiatedBy, p.Requester, p.RequesterGroups = "bob", "bob", nil
		}, ""},
		"the right that an earlier state of the policy had, then": {func(p *v1alpha1.PlannedRemediation) { p.Policy.Digest, p.Requester = "sha256:earlier", "root" }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) { test.plan(&p.Spec.Plan) })
			if got := w.open().look(t.Context()); got.Halted != test.halted || !got.Known {
				t.Errorf("halted: %q, want %q: %+v", got.Halted, test.halted, got)
			}
		})
	}
}

// fakeRollouts has one run that holds every target.
type fakeRollouts struct {
	holder string
	err    error
}

// Holders implements Rollouts.
func (f fakeRollouts) Holders(_ context.Context, _ client.Reader, _ string, targets []v1alpha1.PlanTarget) ([]string, error) {
	return slices.Repeat([]string{f.holder}, len(targets)), f.err
}

// A run counts as long as a target that it has is not done.
func TestARolloutCountsOnlyForTargetsThatAreNotDone(t *testing.T) {
	for settled, closed := range map[v1alpha1.Toggle]bool{v1alpha1.Enabled: false, "": true} {
		w := newWorld(t)
		w.Rollouts = fakeRollouts{holder: "run 3 of ABRelease web"}
		r := w.open()
		r.plan.Status.Steps = []v1alpha1.PlanStep{{State: v1alpha1.StepVerified, Settled: settled}}
		if got := r.look(t.Context()).Closed; (got != "") != closed {
			t.Errorf("settled is %q: closed is %q", settled, got)
		}
	}
}

// A mass drift that a guard sees holds a plan back as long as one of its targets is
// not done.
func TestAMassDriftCountsOnlyForTargetsThatAreNotDone(t *testing.T) {
	const frozen = "SpecGuard/shop sees a mass drift: one cause is assumed, and a person has to look"
	tests := map[string]struct {
		frozen  string
		settled v1alpha1.Toggle
		closed  string
	}{
		"the target is done":       {"web", v1alpha1.Enabled, ""},
		"the target is not done":   {"web", "", frozen},
		"another target is frozen": {"db", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.guards.frozen[test.frozen] = "SpecGuard/shop"
			r := w.open()
			r.plan.Status.Steps = []v1alpha1.PlanStep{{State: v1alpha1.StepVerified, Settled: test.settled}}
			if got := r.look(t.Context()).Closed; got != test.closed {
				t.Errorf("closed: %q, want %q", got, test.closed)
			}
		})
	}
}

func TestAPolicySaysWhetherUrgentTargetsPassTheSchedule(t *testing.T) {
	for urgent, want := range map[v1alpha1.Permission]bool{v1alpha1.Allowed: true, v1alpha1.Forbidden: false} {
		w := newScheduledWorld(t)
		w.clock.now = epoch.Add(2 * time.Hour)
		w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Schedule.Urgent = urgent })
		if b := w.open().look(t.Context()); b.UrgentPasses != want || b.Closed == "" || !b.OutsideSchedule {
			t.Errorf("urgent is %s: brakes are %+v", urgent, b)
		}
	}
}

func TestTheHealthThatAPlanAsksForIsItsPolicys(t *testing.T) {
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }
	tests := map[string]struct {
		health v1alpha1.RemediationHealth
		want   protocol.Health
	}{
		"both times of the policy":           {v1alpha1.RemediationHealth{Stabilization: seconds(45), Timeout: seconds(90)}, protocol.Health{Stabilization: 45 * time.Second, Timeout: 90 * time.Second}},
		"no stabilization, as it says":       {v1alpha1.RemediationHealth{Stabilization: seconds(0)}, protocol.Health{Timeout: 10 * time.Minute}},
		"the defaults where it says nothing": {v1alpha1.RemediationHealth{}, protocol.Health{Stabilization: 10 * time.Second, Timeout: 10 * time.Minute}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Health = test.health })
			r := w.open()
			if h := r.health(); h != nil {
				t.Errorf("before the policy was read it is %+v", h)
			}
			r.look(t.Context())
			if diff := gocmp.Diff(&test.want, r.health()); diff != "" {
				t.Errorf("health (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheLimitsOfAStepAreThoseOfItsPolicyAndItsEnvironment(t *testing.T) {
	w := newWorld(t)
	w.Caps = ledger.Caps{Concurrent: new(int32(7))}
	w.changePolicy(func(p *v1alpha1.RemediationPolicy) {
		p.Spec.Safety.Cooldown = &metav1.Duration{Duration: time.Minute}
		p.Spec.Safety.CircuitBreaker.FailureThreshold = 3
		p.Spec.Safety.CircuitBreaker.OpenDuration = &metav1.Duration{Duration: time.Hour}
	})
	change(w, types.NamespacedName{Name: "production"}, &v1alpha1.Environment{}, func(e *v1alpha1.Environment) {
		e.Spec.Caps = v1alpha1.EnvironmentCaps{MaxConcurrent: new(int32(4)), MaxPerHour: new(int32(5)), MaxPerDay: new(int32(6))}
	})
	r := w.open()
	r.look(t.Context())
	want := []place{
		{ClusterLedger, ledger.Rules{All: ledger.Caps{Concurrent: new(int32(7))}}},
		{"production", ledger.Rules{
			Policy: ledger.Limits{
				Caps:     ledger.Caps{Concurrent: new(int32(2)), PerHour: new(int32(10)), PerDay: new(int32(20))},
				Cooldown: time.Minute, FailureThreshold: 3, OpenDuration: time.Hour,
			},
			All: ledger.Caps{Concurrent: new(int32(4)), PerHour: new(int32(5)), PerDay: new(int32(6))},
		}},
	}
	if diff := gocmp.Diff(want, r.places(), gocmp.AllowUnexported(place{})); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}
