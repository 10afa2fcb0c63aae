// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// two is a plan of one batch with two steps, of which only those named are urgent.
func two(urgent ...int) *State {
	s := running(v1alpha1.StepPlanned, v1alpha1.StepPlanned)
	s.Plan.Spec.Plan.Batches = []v1alpha1.PlanBatch{{Steps: []int32{0, 1}}}
	for _, i := range urgent {
		s.Plan.Spec.Plan.Targets[i].Severity.Urgency = v1alpha1.UrgencyImmediate
	}
	return s
}

// holdsNothing says that the steps of a plan hold nothing.
func holdsNothing(s *State) *State {
	s.Facts.Steps = map[int32]StepFacts{0: {Settled: Yes, Let: Yes}, 1: {Settled: Yes, Let: Yes}}
	return s
}

// D11 of the review of remediation: one urgent target took all others of its plan through
// a closed window.
func TestOnlyUrgentTargetsPassAClosedWindow(t *testing.T) {
	const deferred = "store Deferred, step Planned "
	closed := Brakes{Known: true, Closed: "the window is closed", OutsideSchedule: true, UrgentPasses: true}
	forbidden := closed
	forbidden.UrgentPasses = false
	halfway := Brakes{Known: true, Closed: "evidence cannot be written", UrgentPasses: true}
	tests := map[string]struct {
		state  *State
		brakes Brakes
		want   string
	}{
		"none is urgent":                            {two(), closed, deferred},
		"the first is urgent":                       {two(0), closed, "protocol.Authorize {0}"},
		"the second is urgent":                      {two(1), closed, "protocol.Authorize {1}"},
		"it is urgent, and the policy forbids it":   {two(0), forbidden, deferred},
		"it is urgent, and another brake is closed": {two(0), halfway, deferred},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.state.Plan.Status.StartTime = nil
			test.state.Plan.Status.Phase = v1alpha1.PlanCreated
			holdsNothing(test.state).Facts.Brakes = &test.brakes
			if got := text(Next(test.state)); got != test.want {
				t.Errorf("next is %q, want %q", got, test.want)
			}
		})
	}
}

// D12 of the review of remediation: a request that was sent shortly before the window
// closed was stored after that.
func TestNothingIsSentShortlyBeforeTheWindowCloses(t *testing.T) {
	closes := func(in time.Duration) Brakes { return Brakes{Known: true, ClosesAt: epoch.Add(in)} }
	urgent := closes(time.Second)
	urgent.UrgentPasses = true
	tests := map[string]struct {
		state  *State
		brakes Brakes
		asked  v1alpha1.PlanVerb
		want   string
	}{
		"with time enough it is begun":            {two(), closes(sendMargin + time.Second), "", "protocol.Authorize {0}"},
		"with too little it waits":                {two(), closes(sendMargin), "", "wait 15s: the window closes before a write would surely be stored"},
		"with none the brakes are read again":     {two(), closes(0), "", "protocol.Look {false}"},
		"a person who executes the plan may":      {two(), closes(sendMargin), v1alpha1.PlanExecute, "protocol.Authorize {0}"},
		"a target that is urgent does not wait":   {two(0), urgent, "", "protocol.Authorize {0}"},
		"and a window that never closes does not": {two(), Brakes{Known: true}, "", "protocol.Authorize {0}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.state.Plan.Spec.Control.Verb, test.state.Facts.Brakes = test.asked, &test.brakes
			if got := text(Next(test.state)); got != test.want {
				t.Errorf("next is %q, want %q", got, test.want)
			}
		})
	}
}

// D18 of the review of remediation: a step that was reserved before a pause of hours was
// written with a right that had been taken away.
func TestARightIsAskedForBeforeEachIntent(t *testing.T) {
	target := Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash}
	tests := map[string]struct {
		state v1alpha1.StepState
		facts StepFacts
		want  string
	}{
		"a step that is reserved asks":                  {v1alpha1.StepReserved, StepFacts{Target: &target}, "protocol.Authorize {0}"},
		"and is skipped without the right":              {v1alpha1.StepReserved, StepFacts{Target: &target, Authorized: No, Denied: "alice may not"}, "store Running, step Skipped NotAllowed"},
		"and waits without an answer":                   {v1alpha1.StepReserved, StepFacts{Target: &target, Authorized: Unknown}, "wait 5s: whether the requester may write the target could not be asked"},
		"an intent that is made again asks":             {v1alpha1.StepIntent, StepFacts{Target: &target}, "protocol.Authorize {0}"},
		"and is fenced without the right, then skipped": {v1alpha1.StepIntent, StepFacts{Target: &target, Authorized: No, Denied: "alice may not"}, "protocol.FenceTarget {0}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.state)
			s.Facts.Steps = map[int32]StepFacts{0: test.facts}
			if got := text(Next(s)); got != test.want {
				t.Errorf("next is %q, want %q", got, test.want)
			}
		})
	}
}

// D23 of the review of remediation: the network repeated the last attempt, the second copy
// met a conflict, and the step was called skipped although the first copy was stored.
func TestAConflictOfTheLastAttemptIsReadOffTheTarget(t *testing.T) {
	is := func(version, hash string) *Target {
		return &Target{Read: Yes, UID: "uid-0", ResourceVersion: version, Generation: 2, Hash: hash}
	}
	tests := map[string]struct {
		target *Target
		want   string
	}{
		"the target is read":                    {nil, "protocol.ReadTarget {0}"},
		"the first copy was stored":             {is("11", desiredHash), "store Running, step Applied "},
		"somebody else had written":             {is("11", "pl1:other"), "store Running, step Failed TargetMoved"},
		"nothing was written, and nothing will": {&Target{Read: Yes, UID: "uid-0", ResourceVersion: "11", Generation: 1, Hash: driftedHash}, "store Running, step Skipped Contended"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepIntent)
			s.Plan.Status.Steps[0].Attempts = maxAttempts - 1
			s.Facts.Steps = map[int32]StepFacts{0: {Written: &Write{Result: Conflicted}, Target: test.target}}
			if got := text(Next(s)); got != test.want {
				t.Errorf("next is %q, want %q", got, test.want)
			}
		})
	}
}

// D22 of the review of remediation: the executor panicked on such a plan, again and again.
func TestAPlanThatCannotBeCarriedOutFailsAtTheFirstLook(t *testing.T) {
	tests := map[string]struct {
		batches []v1alpha1.PlanBatch
		want    string
	}{
		"a step that is not there":         {[]v1alpha1.PlanBatch{{Steps: []int32{0, 1, 2}}}, "spec.plan.batches[0].steps names target 2, which is not there"},
		"a step below zero":                {[]v1alpha1.PlanBatch{{Steps: []int32{0, -1}}}, "spec.plan.batches[0].steps names target -1, which is not there"},
		"a target in no batch":             {[]v1alpha1.PlanBatch{{Steps: []int32{0}}}, "spec.plan.batches name target 1 0 times: once is needed"},
		"a target in two batches":          {[]v1alpha1.PlanBatch{{Steps: []int32{0, 1}}, {Order: 1, Steps: []int32{1}}}, "spec.plan.batches name target 1 2 times: once is needed"},
		"two batches of the same order":    {[]v1alpha1.PlanBatch{{Steps: []int32{0}}, {Steps: []int32{1}}}, "spec.plan.batches[1].order is 0: the order of a batch must be its index"},
		"a batch whose order is not there": {[]v1alpha1.PlanBatch{{Order: 7, Steps: []int32{0, 1}}}, "spec.plan.batches[0].order is 7: the order of a batch must be its index"},
		"a plan that can be carried out":   {[]v1alpha1.PlanBatch{{Steps: []int32{1}}, {Order: 1, Steps: []int32{0}}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := two()
			s.Plan.Spec.Plan.Batches, s.Plan.Status = test.batches, v1alpha1.RemediationPlanStatus{}
			w, ok := Next(s).(WriteStatus)
			if !ok || w.Status.EndedReason != test.want || Final(w.Status.Phase) != (test.want != "") {
				t.Errorf("stored is %+v, want %q", w.Status, test.want)
			}
		})
	}
}
