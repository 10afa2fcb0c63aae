// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestWhichBaselinesAreNews(t *testing.T) {
	baseline := func(change func(*v1alpha1.Baseline)) *v1alpha1.Baseline {
		b := &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{State: v1alpha1.StateInSync, Observed: v1alpha1.ObservedState{Hash: "a", ResourceVersion: "1"}}}
		if change != nil {
			change(b)
		}
		return b
	}
	drifted := func(b *v1alpha1.Baseline) { b.Status.State = v1alpha1.StateDrifted }
	accepted := func(b *v1alpha1.Baseline) {
		drifted(b)
		b.Spec.Accept = &v1alpha1.AcceptRequest{Hash: "a", RequestedBy: "alice"}
	}
	acceptedBefore := func(b *v1alpha1.Baseline) {
		accepted(b)
		b.Spec.Accept.Hash = "of before"
	}
	tests := map[string]struct {
		before, after *v1alpha1.Baseline
		want          time.Duration // -1: no news
	}{
		"a new one":           {nil, baseline(nil), lazily},
		"a new drift":         {nil, baseline(drifted), settleTime},
		"one begins to drift": {baseline(nil), baseline(drifted), settleTime},
		"one ends to drift":   {baseline(drifted), baseline(nil), settleTime},
		"one is gone":         {baseline(nil), nil, lazily},
		"a drift is gone":     {baseline(drifted), nil, settleTime},
		"a check that found nothing": {baseline(nil), baseline(func(b *v1alpha1.Baseline) {
			b.Status.LastCheckTime, b.Status.NextCheckTime, b.Status.Observed.ResourceVersion = &metav1.Time{}, &metav1.Time{}, "2"
		}), -1},
		"a drift gets worse": {baseline(drifted), baseline(func(b *v1alpha1.Baseline) {
			drifted(b)
			b.Status.Severity = &v1alpha1.Severity{Level: v1alpha1.SeverityHigh}
		}), settleTime},
		"a claim on a drift":       {baseline(drifted), baseline(func(b *v1alpha1.Baseline) { drifted(b); b.Status.PlanName = "x" }), settleTime},
		"it worked":                {baseline(nil), baseline(func(b *v1alpha1.Baseline) { b.Status.LastReady = &v1alpha1.ReadyRevision{} }), lazily},
		"a person accepts a drift": {baseline(drifted), baseline(accepted), settleTime},
		// The planner waited for the answer to an accept. The answer was no, and changed nothing else: the drift was
		// left alone until something else happened to any object.
		"a person is refused an accept of a drift": {baseline(accepted), baseline(drifted), settleTime},
		"an accept of another state is answered": {
			baseline(func(b *v1alpha1.Baseline) { acceptedBefore(b); b.Generation = 2 }),
			baseline(func(b *v1alpha1.Baseline) { acceptedBefore(b); b.Generation, b.Status.ObservedGeneration = 2, 2 }), settleTime,
		},
		"another state is authorized": {baseline(nil), baseline(func(b *v1alpha1.Baseline) { b.Spec.Authorized = &v1alpha1.AuthorizedState{} }), lazily},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after client.Object
			if tc.before != nil {
				before = tc.before
			}
			if tc.after != nil {
				after = tc.after
			}
			got, news := urgencyOfBaseline(before, after)
			if news != (tc.want >= 0) || news && got != tc.want {
				t.Errorf("in %s (%t), want %s", got, news, tc.want)
			}
		})
	}
}

func TestWhichPlansAreNews(t *testing.T) {
	plan := func(phase v1alpha1.PlanPhase) client.Object {
		return &v1alpha1.RemediationPlan{Status: v1alpha1.RemediationPlanStatus{Phase: phase}}
	}
	controlled := func(phase v1alpha1.PlanPhase, verb v1alpha1.PlanVerb) client.Object {
		return &v1alpha1.RemediationPlan{Spec: v1alpha1.RemediationPlanSpec{Control: v1alpha1.PlanControl{Verb: verb}}, Status: v1alpha1.RemediationPlanStatus{Phase: phase}}
	}
	tests := map[string]struct {
		before, after client.Object
		want          bool
	}{
		// The planner went on to leave the drift alone for a cancellation that was none any more.
		"one whose cancellation a person takes back": {controlled(v1alpha1.PlanCanceled, v1alpha1.PlanCancel), controlled(v1alpha1.PlanCanceled, ""), true},
		"one that a person pauses":                   {controlled(v1alpha1.PlanRunning, ""), controlled(v1alpha1.PlanRunning, v1alpha1.PlanPause), false},
		"a new one":                                  {nil, plan(""), true},
		"one that begins":                            {plan(""), plan(v1alpha1.PlanRunning), false},
		"one that ends":                              {plan(v1alpha1.PlanRunning), plan(v1alpha1.PlanSucceeded), true},
		"one long ended":                             {plan(v1alpha1.PlanFailed), plan(v1alpha1.PlanFailed), false},
		"one that is gone":                           {plan(v1alpha1.PlanFailed), nil, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, news := urgencyOfPlan(tc.before, tc.after); news != tc.want {
				t.Errorf("news: %t", news)
			}
		})
	}
}

func TestHowLongAnEndedPlanStays(t *testing.T) {
	ended := metav1.NewTime(epoch.Add(-time.Hour))
	evidence := &v1alpha1.StepEvidence{Sequence: 1, Digest: "sha256:x"}
	tests := map[string]struct {
		status v1alpha1.RemediationPlanStatus
		keep   time.Duration
		left   time.Duration
		ends   bool
	}{
		"one that runs":             {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning}, time.Minute, 0, false},
		"one that nobody looked at": {v1alpha1.RemediationPlanStatus{}, time.Minute, 0, false},
		"one that ended a while ago": {
			v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanSucceeded, CompletionTime: &ended, Steps: []v1alpha1.PlanStep{{Evidence: evidence}}}, time.Minute, 0, true,
		},
		"one that ended lately": {
			v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanSucceeded, CompletionTime: &ended, Steps: []v1alpha1.PlanStep{{Evidence: evidence}}}, 3 * time.Hour, 2 * time.Hour, true,
		},
		"one with a step without evidence": {
			v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanSucceeded, CompletionTime: &ended, Steps: []v1alpha1.PlanStep{{Evidence: evidence}, {}}}, time.Minute, 0, false,
		},
		"one that ended at no time": {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanSucceeded}, time.Minute, 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Retention{Clock: testingclock.NewFakePassiveClock(epoch), Keep: tc.keep}
			left, ends := r.left(&v1alpha1.RemediationPlan{Status: tc.status})
			if left != tc.left || ends != tc.ends {
				t.Errorf("%s (%t), want %s (%t)", left, ends, tc.left, tc.ends)
			}
		})
	}
}
