// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Of two waits the one that ends first counts. One without an end ends last.
func TestTheSoonerOfTwoWaits(t *testing.T) {
	never, soon, late := Wait{Why: "never"}, Wait{Until: epoch.Add(time.Second), Why: "soon"}, Wait{Until: epoch.Add(time.Hour), Why: "late"}
	for _, test := range []struct{ a, b, want Wait }{
		{soon, late, soon}, {late, soon, soon}, {never, soon, soon}, {soon, never, soon}, {never, never, never}, {late, never, late},
	} {
		if got := sooner(test.a, test.b); got != test.want {
			t.Errorf("of %s and %s: %s", test.a.Why, test.b.Why, got.Why)
		}
		if got := soonest(&test.a, test.b); *got != test.want {
			t.Errorf("of %s, and then %s: %s", test.a.Why, test.b.Why, got.Why)
		}
	}
	if got := soonest(nil, late); *got != late {
		t.Errorf("of one alone: %s", got.Why)
	}
}

// Steps of one batch go on beside each other; a step that waits holds back no other.
func TestAStepThatWaitsHoldsBackNoOther(t *testing.T) {
	healthy := Target{Read: Yes, UID: "uid-0", ResourceVersion: "11", Hash: desiredHash, Ready: No}
	unread := Target{Read: Unknown}
	tests := map[string]struct {
		states []v1alpha1.StepState
		facts  map[int32]StepFacts
		want   Effect
	}{
		"the second one that has written":      {[]v1alpha1.StepState{v1alpha1.StepApplied, v1alpha1.StepApplied}, map[int32]StepFacts{0: {Target: &healthy}}, ReadTarget{1}},
		"the second one that begins":           {[]v1alpha1.StepState{v1alpha1.StepApplied, v1alpha1.StepPlanned}, map[int32]StepFacts{0: {Target: &healthy}}, Authorise{1}},
		"the second one of two that begin":     {[]v1alpha1.StepState{v1alpha1.StepPlanned, v1alpha1.StepPlanned}, map[int32]StepFacts{0: {Authorised: Unknown}}, Authorise{1}},
		"the second one when the first ended":  {[]v1alpha1.StepState{v1alpha1.StepSkipped, v1alpha1.StepPlanned}, map[int32]StepFacts{0: {Let: Yes}}, Authorise{1}},
		"two that wait, for the first of them": {[]v1alpha1.StepState{v1alpha1.StepApplied, v1alpha1.StepPlanned}, map[int32]StepFacts{0: {Target: &healthy}, 1: {Authorised: Unknown}}, Wait{Until: epoch.Add(poll), Why: "it is not ready yet"}},
		"whichever of them that is":            {[]v1alpha1.StepState{v1alpha1.StepReserved, v1alpha1.StepApplied}, map[int32]StepFacts{0: {Target: &unread}, 1: {Target: &Target{Read: Yes, UID: "uid-1", Hash: desiredHash, Ready: No}}}, Wait{Until: epoch.Add(poll), Why: "it is not ready yet"}},
		"the end of a step beside one":         {[]v1alpha1.StepState{v1alpha1.StepApplied, v1alpha1.StepVerified}, map[int32]StepFacts{0: {Target: &healthy}}, Settle{1, v1alpha1.LedgerSucceeded}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.states...)
			s.Facts.Steps = test.facts
			if step := &s.Plan.Status.Steps[0]; step.State == v1alpha1.StepSkipped {
				step.Settled, step.Evidence = v1alpha1.Enabled, &v1alpha1.StepEvidence{}
			}
			if diff := cmp.Diff(test.want, Next(s)); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABatchWaitsForTheOneBefore(t *testing.T) {
	const delay = time.Minute
	tests := map[string]struct {
		delay bool
		ended []time.Duration // of the steps of the first batch; negative for none
		want  Effect
	}{
		"without a delay it begins at once":     {false, []time.Duration{0, 0}, Authorise{2}},
		"with a delay it waits":                 {true, []time.Duration{0, 0}, Wait{Until: epoch.Add(delay), Why: "delayAfter the batch before"}},
		"from the end of the last step on":      {true, []time.Duration{-40 * time.Second, -10 * time.Second}, Wait{Until: epoch.Add(delay - 10*time.Second), Why: "delayAfter the batch before"}},
		"whichever step that is":                {true, []time.Duration{-10 * time.Second, -40 * time.Second}, Wait{Until: epoch.Add(delay - 10*time.Second), Why: "delayAfter the batch before"}},
		"when the delay is over it begins":      {true, []time.Duration{-2 * delay, -delay}, Authorise{2}},
		"an end without a time delays it never": {true, nil, Authorise{2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepVerified, v1alpha1.StepVerified, v1alpha1.StepPlanned)
			s.Plan.Spec.Plan.Batches = []v1alpha1.PlanBatch{{Order: 0, Steps: []int32{0, 1}}, {Order: 1, Steps: []int32{2}}}
			if test.delay {
				s.Plan.Spec.Plan.Batches[0].DelayAfter = &metav1.Duration{Duration: delay}
			}
			s.Facts.Steps = map[int32]StepFacts{0: {Let: Yes}, 1: {Let: Yes}}
			for i := range 2 {
				step := &s.Plan.Status.Steps[i]
				step.Settled, step.Evidence = v1alpha1.Enabled, &v1alpha1.StepEvidence{}
				if test.ended != nil {
					step.FinishedAt = at(test.ended[i])
				}
			}
			if diff := cmp.Diff(test.want, Next(s)); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatHoldsAPlanBack(t *testing.T) {
	manual := func(s *State) { s.Plan.Spec.Plan.Trigger = v1alpha1.TriggerManual }
	execute := func(s *State) { s.Plan.Spec.Control.Verb = v1alpha1.PlanExecute }
	closed := func(outside bool) func(*State) {
		return func(s *State) { s.Facts.Brakes = &Brakes{Known: true, Closed: "closed", OutsideSchedule: outside} }
	}
	scheduled := func(d time.Duration) func(*State) {
		return func(s *State) { s.Plan.Spec.Plan.ScheduledFor = at(d) }
	}
	const begins = ""
	tests := map[string]struct {
		state []func(*State)
		want  string
	}{
		"nothing":                                {nil, begins},
		"a person, for a manual plan":            {[]func(*State){manual}, "Deferred: it waits for somebody to execute it"},
		"no person, once it is asked to execute": {[]func(*State){manual, execute}, begins},
		"its time":                               {[]func(*State){scheduled(time.Hour)}, "Scheduled: it is scheduled until 11:00:00"},
		"its time, though not after it":          {[]func(*State){scheduled(0)}, begins},
		"its time, though not against a person":  {[]func(*State){scheduled(time.Hour), execute}, begins},
		"a schedule that is closed":              {[]func(*State){closed(true)}, "Deferred: closed"},
		"a schedule that a person passes":        {[]func(*State){closed(true), execute}, begins},
		"a brake that is put on":                 {[]func(*State){closed(false)}, "Deferred: closed"},
		"a brake that no person passes":          {[]func(*State){closed(false), execute}, "Deferred: closed"},
		"a brake with an end": {[]func(*State){func(s *State) {
			s.Facts.Brakes = &Brakes{Known: true, Closed: "closed", Until: epoch.Add(90*time.Second + time.Millisecond)}
		}}, "Deferred: closed until 10:01:30"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepPlanned)
			s.Plan.Status.StartedAt, s.Plan.Status.Phase = nil, v1alpha1.PlanCreated
			s.Plan.Status.DeferredUntil = at(time.Minute) // of an earlier wait
			for _, change := range test.state {
				change(s)
			}
			e := Next(s)
			if test.want == begins {
				if _, ok := e.(Authorise); !ok {
					t.Errorf("next is %T %+v", e, e)
				}
				return
			}
			w, ok := e.(WriteStatus)
			if !ok {
				t.Fatalf("next is %T %+v", e, e)
			}
			got := fmt.Sprintf("%s: %s", w.Status.Phase, w.Status.DeferralReason)
			if until := w.Status.DeferredUntil; until != nil {
				got += until.UTC().Format(" until 15:04:05")
			}
			if got != test.want {
				t.Errorf("the plan says %q, want %q", got, test.want)
			}
			// Told once, it waits; told with another generation, it says so again.
			s.Plan.Status = w.Status
			if wait, ok := Next(s).(Wait); !ok || wait.Why != w.Status.DeferralReason {
				t.Errorf("then it is to %T %+v", Next(s), Next(s))
			}
			s.Plan.Generation++
			if _, ok := Next(s).(WriteStatus); !ok {
				t.Errorf("with another spec it is to %T", Next(s))
			}
		})
	}
	t.Run("a manual plan that has begun needs no person", func(t *testing.T) {
		s := running(v1alpha1.StepPlanned)
		manual(s)
		if _, ok := Next(s).(Authorise); !ok {
			t.Errorf("next is %T", Next(s))
		}
	})
}

// A plan that goes on says no longer what held it back.
func TestAPlanThatGoesOnNoLongerSaysWhatHeldItBack(t *testing.T) {
	tests := map[string]struct {
		state func() *State
		phase v1alpha1.PlanPhase
	}{
		"it was granted a place": {func() *State {
			s := running(v1alpha1.StepPlanned)
			s.Facts.Steps = map[int32]StepFacts{0: {Authorised: Yes, Claimed: Yes, Mirror: &Place{Granted: Yes}, Place: &Place{Granted: Yes}}}
			return s
		}, v1alpha1.PlanRunning},
		"it was asked to end": {func() *State {
			s := running(v1alpha1.StepPlanned)
			s.Plan.Spec.Control.Verb = v1alpha1.PlanCancel
			return s
		}, v1alpha1.PlanSealing},
		"it has ended": {func() *State {
			s := running(v1alpha1.StepVerified)
			s.Plan.Status.Steps[0].Settled, s.Plan.Status.Steps[0].Evidence = v1alpha1.Enabled, &v1alpha1.StepEvidence{}
			s.Facts.Steps = map[int32]StepFacts{0: {Let: Yes}}
			return s
		}, v1alpha1.PlanSucceeded},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := test.state()
			s.Plan.Status.DeferralReason, s.Plan.Status.DeferredUntil = "the window is closed", at(time.Hour)
			w, ok := Next(s).(WriteStatus)
			if !ok || w.Status.Phase != test.phase || w.Status.DeferralReason != "" || w.Status.DeferredUntil != nil {
				t.Errorf("stored is %+v", w.Status)
			}
		})
	}
}

func TestARefusalOfThePlaceIsWhatAPlanWaitsFor(t *testing.T) {
	until := epoch.Add(time.Hour)
	refused := &Place{Granted: No, Refusal: "10 of 10 in the last hour", Until: until}
	for name, facts := range map[string]StepFacts{
		"of the mirror":  {Authorised: Yes, Claimed: Yes, Mirror: refused},
		"of the ledgers": {Authorised: Yes, Claimed: Yes, Mirror: &Place{Granted: Yes}, Place: refused},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepPlanned)
			s.Facts.Steps = map[int32]StepFacts{0: facts}
			w, ok := Next(s).(WriteStatus)
			if !ok || w.Status.DeferralReason != refused.Refusal || !w.Status.DeferredUntil.Time.Equal(until) {
				t.Errorf("stored is %+v", w.Status)
			}
		})
	}
	t.Run("not what could not be asked", func(t *testing.T) {
		s := running(v1alpha1.StepPlanned)
		s.Facts.Steps = map[int32]StepFacts{0: {Authorised: Yes, Claimed: Yes, Mirror: &Place{Granted: Yes}, Place: &Place{Granted: Unknown}}}
		if diff := cmp.Diff(Effect(Wait{Until: epoch.Add(again), Why: "the ledgers could not be asked"}), Next(s)); diff != "" {
			t.Errorf("next (-want +got):\n%s", diff)
		}
	})
}

// The log of a step tells people its whole story, the newest lines if it is long.
func TestTheLogOfAStepTellsItsStory(t *testing.T) {
	w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, false)
	e := &executor{w: w, holder: "a"}
	observe(t, e, func(second int) Target {
		if second == 3 {
			return Target{Read: Yes, Ready: No}
		}
		return Target{Read: Yes, Ready: Yes}
	})
	want := []string{
		"10:00:00Z granted", "10:00:00Z about to write over version 10", "10:00:00Z written as version 11", "10:00:00Z as it should be, and ready",
		"10:00:03Z no longer ready", "10:00:04Z as it should be, and ready", "10:00:14Z Verified: as it should be, and healthy",
	}
	step := &w.plan.Status.Steps[0]
	var got []string
	for _, line := range step.Logs {
		got = append(got, strings.TrimPrefix(line, "2026-03-02T"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
	for i := range 20 {
		note(step, fmt.Sprint("line ", i), at(0))
	}
	if len(step.Logs) != maxLogs || !strings.HasSuffix(step.Logs[maxLogs-1], "line 19") || !strings.HasSuffix(step.Logs[0], "line 4") {
		t.Errorf("of a long log is left %q", step.Logs)
	}
}
