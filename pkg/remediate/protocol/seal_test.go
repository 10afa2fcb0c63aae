// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// text says what an effect is, in a word or two.
func text(e Effect) string {
	switch x := e.(type) {
	case WriteStatus:
		out := strings.TrimSpace(fmt.Sprintf("store %s %s", x.Status.Phase, x.Status.EndingAs))
		if x.Status.EndedBy != "" {
			out += " by " + x.Status.EndedBy
		}
		return fmt.Sprintf("%s, step %s %s", out, x.Status.Steps[0].State, x.Status.Steps[0].Reason)
	case Wait:
		if x.Until.IsZero() {
			return "wait: " + x.Why
		}
		return fmt.Sprintf("wait %s: %s", x.Until.Sub(epoch), x.Why)
	}
	return fmt.Sprintf("%T %v", e, e)
}

func TestPausingResumingAndEndingAPlan(t *testing.T) {
	const planned, applied, verified = v1alpha1.StepPlanned, v1alpha1.StepApplied, v1alpha1.StepVerified
	const going, sealing, paused = v1alpha1.PlanRunning, v1alpha1.PlanSealing, v1alpha1.PlanPaused
	before := Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash, Ready: Yes}
	back := Target{Read: Yes, UID: "uid-0", ResourceVersion: "11", Generation: 2, Hash: desiredHash, Ready: Yes}
	ill, moved := back, back
	ill.Ready, moved.Hash = No, "pl1:other"
	fenced := func(s *State) { s.Plan.Status.Steps[0].Fence = "12" }
	none := func(*State) {}
	nothing := StepFacts{Settled: Yes, Let: Yes} // held, as the ledgers and the Baseline say
	halted := func(known bool) func(*State) {
		return func(s *State) { s.Facts.Brakes = &Brakes{Known: known, Halted: "halted", HaltedBy: "root"} }
	}
	tests := map[string]struct {
		phase    v1alpha1.PlanPhase
		endingAs v1alpha1.PlanPhase
		verb     v1alpha1.PlanVerb
		step     v1alpha1.StepState
		facts    StepFacts
		more     func(*State)
		want     string
	}{
		"a pause is asked for":                      {going, "", v1alpha1.PlanPause, planned, StepFacts{}, none, "store Sealing Paused by alice, step Planned "},
		"a cancellation is asked for":               {going, "", v1alpha1.PlanCancel, planned, StepFacts{}, none, "store Sealing Canceled by alice, step Planned "},
		"a halt is found":                           {going, "", "", planned, StepFacts{}, halted(true), "store Sealing Canceled by root, step Planned "},
		"a step that has not begun needs no fence":  {sealing, paused, v1alpha1.PlanPause, planned, StepFacts{}, none, "store Paused by alice, step Planned "},
		"a step that has written needs none either": {sealing, paused, v1alpha1.PlanPause, applied, StepFacts{}, none, "store Paused by alice, step Applied "},
		"a step that is about to write is read":     {sealing, paused, v1alpha1.PlanPause, v1alpha1.StepIntent, StepFacts{}, none, "protocol.ReadTarget {0}"},
		"and fenced":                                {sealing, paused, v1alpha1.PlanPause, v1alpha1.StepIntent, StepFacts{Target: &before}, none, "protocol.FenceTarget {0}"},
		"when it is fenced it holds no place":       {sealing, paused, v1alpha1.PlanPause, v1alpha1.StepIntent, StepFacts{}, fenced, "store Sealing Paused by alice, step Planned "},
		"though it can be canceled meanwhile":       {sealing, paused, v1alpha1.PlanCancel, v1alpha1.StepIntent, StepFacts{}, none, "store Sealing Canceled by alice, step Intent "},
		"it stays paused":                           {paused, "", v1alpha1.PlanPause, planned, nothing, none, "wait: it is paused"},
		"what has ended is told while it is paused": {paused, "", v1alpha1.PlanPause, verified, StepFacts{}, none, "protocol.Settle {0 Succeeded}"},
		"it goes on when no pause is asked for":     {paused, "", "", planned, StepFacts{}, none, "store Running, step Planned "},
		"it goes on when it is to execute":          {paused, "", v1alpha1.PlanExecute, planned, StepFacts{}, none, "store Running, step Planned "},
		"it is canceled while it is paused":         {paused, "", v1alpha1.PlanCancel, planned, StepFacts{}, none, "store Sealing Canceled by alice, step Planned "},
		"it is halted while it is paused":           {paused, "", v1alpha1.PlanPause, planned, StepFacts{}, halted(true), "store Sealing Canceled by root, step Planned "},
		"though not by a brake that was not read":   {paused, "", v1alpha1.PlanPause, planned, nothing, halted(false), "wait: it is paused"},
		"at its end what has not begun is skipped":  {sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, planned, StepFacts{}, none, "store Sealing Canceled by alice, step Skipped Stopped"},
		"what was granted is skipped too":           {sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, v1alpha1.StepReserved, StepFacts{}, none, "store Sealing Canceled by alice, step Skipped Stopped"},
		"what is fenced is told to be so":           {sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, v1alpha1.StepIntent, StepFacts{}, fenced, "store Sealing Canceled by alice, step Fenced Stopped"},
		"what turns out to be written is told":      {sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, v1alpha1.StepIntent, StepFacts{Target: &back}, none, "store Sealing Canceled by alice, step Applied "},
		"what is healthy by then is verified":       {sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, applied, StepFacts{Target: &back}, none, "store Sealing Canceled by alice, step Verified "},
		"what is ill by then has failed":            {sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, applied, StepFacts{Target: &ill}, none, "store Sealing Canceled by alice, step Failed Stopped"},
		"what was moved by then has failed":         {sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, applied, StepFacts{Target: &moved}, none, "store Sealing Canceled by alice, step Failed Stopped"},
		"what is gone by then has failed":           {sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, applied, StepFacts{Target: &Target{Read: No}}, none, "store Sealing Canceled by alice, step Failed Stopped"},
		"what cannot be read is waited for":         {sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, applied, StepFacts{Target: &Target{Read: Unknown}}, none, "wait 5s: the target could not be read"},
		"what has ended is told before the plan is": {sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, verified, StepFacts{}, none, "protocol.Settle {0 Succeeded}"},
		"a fence that is refused at once is outlived": {
			sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, v1alpha1.StepIntent, StepFacts{Target: &before, Fenced: &Write{Result: Refused, Message: "no"}}, none,
			"wait 1m0s: a request may still be under way",
		},
		"a fence that is forbidden after a takeover waits for the right": {
			sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, v1alpha1.StepIntent, StepFacts{Target: &before, Fenced: &Write{Result: Forbidden, Message: "no"}},
			func(s *State) { s.Plan.Status.Epoch = 2 }, "wait 5s: it cannot be fenced, and a request may be under way: no",
		},
		"so does one that is refused after another try": {
			sealing, v1alpha1.PlanCanceled, v1alpha1.PlanCancel, v1alpha1.StepIntent, StepFacts{Target: &before, Fenced: &Write{Result: Refused, Message: "no"}},
			func(s *State) { s.Plan.Status.Steps[0].Attempts = 1 }, "wait 5s: it cannot be fenced, and a request may be under way: no",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.step)
			s.Plan.Status.Phase, s.Plan.Status.EndingAs = test.phase, test.endingAs
			s.Plan.Spec.Control = v1alpha1.PlanControl{Verb: test.verb, RequestedBy: "alice"}
			if test.phase != going {
				s.Plan.Status.EndedBy = "alice"
			}
			s.Facts.Steps = map[int32]StepFacts{0: test.facts}
			test.more(s)
			if got := text(Next(s)); got != test.want {
				t.Errorf("next is %q, want %q", got, test.want)
			}
		})
	}
}

func TestAFenceIsToldInTheStepAndItsLog(t *testing.T) {
	s := running(v1alpha1.StepIntent)
	s.Plan.Status.Phase, s.Plan.Status.EndingAs = v1alpha1.PlanSealing, v1alpha1.PlanCanceled
	s.Facts.Steps = map[int32]StepFacts{0: {Fenced: &Write{Result: Stored, ResourceVersion: "12"}}}
	step := stored(t, Next(s))
	if diff := cmp.Diff([]string{"2026-03-02T10:00:00Z fenced at version 12"}, step.Logs); diff != "" || step.Fence != "12" {
		t.Errorf("the fence is %q; log (-want +got):\n%s", step.Fence, diff)
	}
}

// A target that is not as the plan says is left alone, and the step says why.
func TestWhatIsReadBeforeAWriteDecidesWhetherItComes(t *testing.T) {
	is := func(change func(*Target)) Target {
		read := Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash, Ready: Yes}
		change(&read)
		return read
	}
	restart := func(p *v1alpha1.PlanTarget) { p.Action, p.DesiredHash = v1alpha1.ActionRestart, driftedHash }
	made := func(p *v1alpha1.PlanTarget) { p.UID = "" }
	const goes = "protocol.LoadRevision {0}"
	tests := map[string]struct {
		plan   func(*v1alpha1.PlanTarget)
		target Target
		want   string
	}{
		"it is as the plan says":               {nil, is(func(*Target) {}), goes},
		"it cannot be read":                    {nil, Target{Read: Unknown}, "wait 5s: the target could not be read"},
		"it is being deleted":                  {nil, is(func(t *Target) { t.Ending = true }), "Skipped Terminating"},
		"it is no longer wanted":               {nil, is(func(t *Target) { t.Unwanted = "no guard" }), "Skipped TargetMoved"},
		"it is gone":                           {nil, Target{Read: No}, "Skipped TargetReplaced"},
		"another object has its name":          {nil, is(func(t *Target) { t.UID = "other" }), "Skipped TargetReplaced"},
		"writers fight over it":                {nil, is(func(t *Target) { t.Contended = true }), "Skipped Contended"},
		"it is as it should be":                {nil, is(func(t *Target) { t.Hash = desiredHash }), "Skipped AlreadyDesired"},
		"it changed":                           {nil, is(func(t *Target) { t.Hash = "pl1:other" }), "Skipped TargetMoved"},
		"it is to be made, and is gone":        {made, Target{Read: No}, goes},
		"it is to be made, and was made":       {made, is(func(t *Target) { t.Hash = desiredHash }), "Skipped AlreadyDesired"},
		"it is to be made, and another was":    {made, is(func(*Target) {}), "Skipped TargetReplaced"},
		"it is to be restarted":                {restart, is(func(*Target) {}), goes},
		"a person restarted it":                {restart, is(func(t *Target) { t.RestartedFor = "2026-03-02T09:00:00Z" }), goes},
		"another step restarted it":            {restart, is(func(t *Target) { t.RestartedFor = "plan-uid-1" }), goes},
		"it was restarted for this step":       {restart, is(func(t *Target) { t.RestartedFor = "plan-uid-0" }), "Skipped AlreadyDesired"},
		"a restart leaves its token, no state": {restart, is(func(t *Target) { t.Hash = "pl1:other" }), "Skipped TargetMoved"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepReserved)
			if test.plan != nil {
				test.plan(&s.Plan.Spec.Plan.Targets[0])
			}
			s.Facts.Steps = map[int32]StepFacts{0: {Authorized: Yes, Target: &test.target}}
			got := Next(s)
			if w, ok := got.(WriteStatus); ok {
				if step := w.Status.Steps[0]; fmt.Sprint(step.State, " ", step.Reason) != test.want {
					t.Errorf("the step is %s %s, want %s", step.State, step.Reason, test.want)
				}
				return
			}
			if text(got) != test.want {
				t.Errorf("next is %q, want %q", text(got), test.want)
			}
		})
	}
}

func TestAConflictIsCountedAndTheTargetForgotten(t *testing.T) {
	target := Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash}
	s := running(v1alpha1.StepReserved)
	s.Facts.Steps = map[int32]StepFacts{0: {Authorized: Yes, Target: &target, Revision: Yes, Tried: &Write{Result: Conflicted}}}
	w, ok := Next(s).(WriteStatus)
	if !ok || w.Status.Steps[0].Attempts != 1 || w.Status.Steps[0].State != v1alpha1.StepReserved {
		t.Fatalf("stored is %+v", w.Status.Steps)
	}
	if diff := cmp.Diff(Forget{Steps: []int32{0}}, w.Forget); diff != "" {
		t.Errorf("to forget (-want +got):\n%s", diff)
	}
	s.Plan.Status.Steps[0].Attempts = maxAttempts - 1
	if step := stored(t, Next(s)); step.State != v1alpha1.StepSkipped || step.Reason != v1alpha1.ReasonTargetContended {
		t.Errorf("after %d attempts the step is %s %s", maxAttempts, step.State, step.Reason)
	}
}

// When a step has failed nothing more begins; what has written is seen to its end.
func TestAfterAFailureNothingMoreBegins(t *testing.T) {
	s := running(v1alpha1.StepFailed, v1alpha1.StepPlanned, v1alpha1.StepReserved, v1alpha1.StepApplied)
	failed := &s.Plan.Status.Steps[0]
	failed.Settled, failed.Evidence = v1alpha1.Enabled, &v1alpha1.StepEvidence{}
	ill := Target{Read: Yes, UID: "uid-3", ResourceVersion: "11", Generation: 2, Hash: desiredHash, Ready: No}
	s.Facts.Steps = map[int32]StepFacts{0: {Let: Yes}, 3: {Target: &ill}}
	w, ok := Next(s).(WriteStatus)
	if !ok {
		t.Fatalf("next is %s", text(Next(s)))
	}
	var got []string
	for _, step := range w.Status.Steps {
		got = append(got, strings.TrimSpace(fmt.Sprint(step.State, " ", step.Reason)))
	}
	if diff := cmp.Diff([]string{"Failed", "Skipped Stopped", "Skipped Stopped", "Applied"}, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// What has written goes on whatever holds the plan back.
func TestBrakesDoNotHoldBackWhatHasWritten(t *testing.T) {
	s := running(v1alpha1.StepApplied, v1alpha1.StepPlanned)
	s.Facts.Brakes = &Brakes{Known: true, Closed: "closed"}
	s.Plan.Status.DeferralReason = "closed"
	if got := text(Next(s)); got != "protocol.ReadTarget {0}" {
		t.Errorf("next is %s", got)
	}
	ill := Target{Read: Yes, UID: "uid-0", ResourceVersion: "11", Generation: 2, Hash: desiredHash, Ready: No}
	s.Facts.Steps = map[int32]StepFacts{0: {Target: &ill}}
	if got := text(Next(s)); got != "wait 10m0s: it is not ready yet" {
		t.Errorf("then it is to %s", got)
	}
}
