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
		"the second one that has written":       {[]v1alpha1.StepState{v1alpha1.StepApplied, v1alpha1.StepApplied}, map[int32]StepFacts{0: {Target: &healthy}}, ReadTarget{1}},
		"the second one that begins":            {[]v1alpha1.StepState{v1alpha1.StepApplied, v1alpha1.StepPlanned}, map[int32]StepFacts{0: {Target: &healthy}}, Authorize{1}},
		"the second one of two that begin":      {[]v1alpha1.StepState{v1alpha1.StepPlanned, v1alpha1.StepPlanned}, map[int32]StepFacts{0: {Authorized: Unknown}}, Authorize{1}},
		"the second one when the first ended":   {[]v1alpha1.StepState{v1alpha1.StepSkipped, v1alpha1.StepPlanned}, map[int32]StepFacts{0: {Let: Yes}}, Authorize{1}},
		"two that wait, for the sooner of them": {[]v1alpha1.StepState{v1alpha1.StepApplied, v1alpha1.StepPlanned}, map[int32]StepFacts{0: {Target: &healthy}, 1: {Authorized: Unknown}}, Wait{Until: epoch.Add(again), Why: "whether the requester may write the target could not be asked"}},
		"whichever of them that is":             {[]v1alpha1.StepState{v1alpha1.StepReserved, v1alpha1.StepApplied}, map[int32]StepFacts{0: {Authorized: Yes, Target: &unread}, 1: {Target: &Target{Read: Yes, UID: "uid-1", Hash: desiredHash, Ready: No}}}, Wait{Until: epoch.Add(again), Why: "the target could not be read"}},
		"the end of a step beside one":          {[]v1alpha1.StepState{v1alpha1.StepApplied, v1alpha1.StepVerified}, map[int32]StepFacts{0: {Target: &healthy}}, Settle{1, v1alpha1.LedgerSucceeded}},
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
		"without a delay it begins at once":     {false, []time.Duration{0, 0}, Authorize{2}},
		"with a delay it waits":                 {true, []time.Duration{0, 0}, Wait{Until: epoch.Add(delay), Why: "delayAfter the batch before"}},
		"from the end of the last step on":      {true, []time.Duration{-40 * time.Second, -10 * time.Second}, Wait{Until: epoch.Add(delay - 10*time.Second), Why: "delayAfter the batch before"}},
		"whichever step that is":                {true, []time.Duration{-10 * time.Second, -40 * time.Second}, Wait{Until: epoch.Add(delay - 10*time.Second), Why: "delayAfter the batch before"}},
		"when the delay is over it begins":      {true, []time.Duration{-2 * delay, -delay}, Authorize{2}},
		"an end without a time delays it never": {true, nil, Authorize{2}},
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
					step.CompletionTime = at(test.ended[i])
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
	requested := func(s *State) { s.Plan.Spec.Plan.Request = &v1alpha1.PlanRequest{Name: "ask", UID: "uid-ask"} }
	closed := func(outside bool) func(*State) {
		return func(s *State) { s.Facts.Brakes = &Brakes{Known: true, Closed: "closed", OutsideSchedule: outside} }
	}
	scheduled := func(d time.Duration) func(*State) {
		return func(s *State) { s.Plan.Spec.Plan.ScheduledTime = at(d) }
	}
	const begins = ""
	tests := map[string]struct {
		state []func(*State)
		want  string
	}{
		"nothing":                                {nil, begins},
		"a person, for a manual plan":            {[]func(*State){manual}, "Deferred: it waits for a person to execute it"},
		"no person, once it is asked to execute": {[]func(*State){manual, execute}, begins},
		"no person, if one asked for the plan":   {[]func(*State){manual, requested}, begins},
		"its time":                               {[]func(*State){scheduled(time.Hour)}, "Scheduled: it is scheduled until 11:00:00"},
		"its time, though not after it":          {[]func(*State){scheduled(0)}, begins},
		"its time, though not against a person":  {[]func(*State){scheduled(time.Hour), execute}, begins},
		"a schedule that is closed":              {[]func(*State){closed(true)}, "Deferred: closed"},
		"a schedule that a person passes":        {[]func(*State){closed(true), execute}, begins},
		"a schedule that a request passes":       {[]func(*State){closed(true), requested}, begins},
		"a brake that no request passes":         {[]func(*State){closed(false), requested}, "Deferred: closed"},
		"a brake that is put on":                 {[]func(*State){closed(false)}, "Deferred: closed"},
		"a brake that no person passes":          {[]func(*State){closed(false), execute}, "Deferred: closed"},
		"a brake with an end": {[]func(*State){func(s *State) {
			s.Facts.Brakes = &Brakes{Known: true, Closed: "closed", Until: epoch.Add(90*time.Second + time.Millisecond)}
		}}, "Deferred: closed until 10:01:30"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := holdsNothing(running(v1alpha1.StepPlanned))
			s.Plan.Status.StartTime, s.Plan.Status.Phase = nil, v1alpha1.PlanCreated
			s.Plan.Status.ResumeTime = at(time.Minute) // of an earlier wait
			for _, change := range test.state {
				change(s)
			}
			e := Next(s)
			if test.want == begins {
				if _, ok := e.(Authorize); !ok {
					t.Errorf("next is %T %+v", e, e)
				}
				return
			}
			w, ok := e.(WriteStatus)
			if !ok {
				t.Fatalf("next is %T %+v", e, e)
			}
			got := fmt.Sprintf("%s: %s", w.Status.Phase, w.Status.DeferralReason)
			if until := w.Status.ResumeTime; until != nil {
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
		if _, ok := Next(s).(Authorize); !ok {
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
			s.Facts.Steps = map[int32]StepFacts{0: {Authorized: Yes, Claimed: Yes, Mirror: &Place{Granted: Yes}, Place: &Place{Granted: Yes}}}
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
			s.Plan.Status.DeferralReason, s.Plan.Status.ResumeTime = "the window is closed", at(time.Hour)
			w, ok := Next(s).(WriteStatus)
			if !ok || w.Status.Phase != test.phase || w.Status.DeferralReason != "" || w.Status.ResumeTime != nil {
				t.Errorf("stored is %+v", w.Status)
			}
		})
	}
}

func TestARefusalOfThePlaceIsWhatAPlanWaitsFor(t *testing.T) {
	until := epoch.Add(time.Hour)
	refused := &Place{Granted: No, Refusal: "10 of 10 in the last hour", Until: until}
	for name, facts := range map[string]StepFacts{
		"of the mirror":  {Authorized: Yes, Settled: Yes, Let: Yes, Mirror: refused},
		"of the ledgers": {Authorized: Yes, Settled: Yes, Let: Yes, Mirror: &Place{Granted: Yes}, Place: refused},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepPlanned)
			s.Facts.Steps = map[int32]StepFacts{0: facts}
			w, ok := Next(s).(WriteStatus)
			if !ok || w.Status.DeferralReason != refused.Refusal || !w.Status.ResumeTime.Time.Equal(until) {
				t.Errorf("stored is %+v", w.Status)
			}
		})
	}
	t.Run("not what could not be asked", func(t *testing.T) {
		s := running(v1alpha1.StepPlanned)
		s.Facts.Steps = map[int32]StepFacts{0: {Authorized: Yes, Claimed: Yes, Mirror: &Place{Granted: Yes}, Place: &Place{Granted: Unknown}}}
		if diff := cmp.Diff(Effect(Wait{Until: epoch.Add(again), Why: "the ledgers could not be asked"}), Next(s)); diff != "" {
			t.Errorf("next (-want +got):\n%s", diff)
		}
	})
}

// An executor took a place, got no answer about the target, and then found the window closed:
// the plan waited for the window and kept the place, which no status told of.
func TestAPlanThatWaitsKeepsNoPlaceThatItsStatusDoesNotTellOf(t *testing.T) {
	closed := Brakes{Known: true, Closed: "the window is closed"}
	tests := map[string]struct {
		facts StepFacts
		told  string
		want  string
	}{
		"it asks for its place first":                 {StepFacts{}, "", "protocol.Release {0}"},
		"the ledgers cannot be told":                  {StepFacts{Settled: Unknown}, "", "wait 5s: its place could not be given back"},
		"then it lets go of its target":               {StepFacts{Settled: Yes}, "", "protocol.ReleaseTarget {0}"},
		"then it tells that it waits":                 {StepFacts{Settled: Yes, Let: Yes}, "", "Planned"},
		"it asks once for each reason":                {StepFacts{}, closed.Closed, "wait: the window is closed"},
		"another reason is another wait, and it asks": {StepFacts{}, "1 of 1 in the last hour", "protocol.Release {0}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepPlanned)
			s.Plan.Status.Phase, s.Plan.Status.StartTime, s.Plan.Status.DeferralReason = v1alpha1.PlanDeferred, nil, test.told
			s.Plan.Status.ObservedGeneration = s.Plan.Generation
			s.Facts.Brakes, s.Facts.Steps = &closed, map[int32]StepFacts{0: test.facts}
			if got := ends(Next(s)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
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

// D16 of the review of remediation: a plan that waited a day for its place kept its claim,
// and no other plan could have the target.
func TestAPlanThatWaitsForItsPlaceClaimsNoTarget(t *testing.T) {
	granted, refused := &Place{Granted: Yes}, &Place{Granted: No, Refusal: "20 of 20 writes a day"}
	tests := map[string]struct {
		facts StepFacts
		want  string
	}{
		"it asks for a place first":           {StepFacts{Authorized: Yes, Mirror: granted}, "protocol.Reserve {0}"},
		"without a place it gives back first": {StepFacts{Authorized: Yes, Mirror: granted, Place: refused}, "protocol.Release {0}"},
		"and lets go of a target it took":     {StepFacts{Authorized: Yes, Mirror: granted, Place: refused, Settled: Yes}, "protocol.ReleaseTarget {0}"},
		"without a place it waits":            {StepFacts{Authorized: Yes, Mirror: granted, Place: refused, Settled: Yes, Let: Yes}, "Planned"},
		"with a place it claims the target":   {StepFacts{Authorized: Yes, Mirror: granted, Place: granted}, "protocol.ClaimTarget {0}"},
		"with both it begins":                 {StepFacts{Authorized: Yes, Mirror: granted, Place: granted, Claimed: Yes}, "Reserved"},
		"a target of another plan ends it":    {StepFacts{Authorized: Yes, Mirror: granted, Place: granted, Claimed: No}, "Skipped Claimed"},
		"a claim without an answer is a wait": {StepFacts{Authorized: Yes, Mirror: granted, Place: granted, Claimed: Unknown}, "wait 5s: the target could not be claimed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepPlanned)
			s.Facts.Steps = map[int32]StepFacts{0: test.facts}
			if got := ends(Next(s)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// D16 of the review of remediation: a plan that was paused, or whose window had closed, kept
// the place and the claim of a step that had written nothing.
func TestAPlanThatWaitsGivesBackThePlaceAndTheTarget(t *testing.T) {
	closed, open := Brakes{Known: true, Closed: "the window is closed"}, Brakes{Known: true}
	paused := func(s *State) {
		s.Plan.Status.Phase, s.Plan.Spec.Control.Verb = v1alpha1.PlanPaused, v1alpha1.PlanPause
	}
	returned := func(s *State) { s.Plan.Status.Steps[0].StartTime = nil }
	tests := map[string]struct {
		state  v1alpha1.StepState
		change func(*State)
		brakes Brakes
		facts  StepFacts
		want   string
	}{
		"the window has closed":                      {v1alpha1.StepReserved, nil, closed, StepFacts{}, "Planned"},
		"the plan is paused":                         {v1alpha1.StepReserved, paused, open, StepFacts{}, "Planned"},
		"nothing is known of the brakes":             {v1alpha1.StepReserved, nil, Brakes{}, StepFacts{}, "wait 5s: the causes of a wait could not be read"},
		"the place is given back first":              {v1alpha1.StepPlanned, nil, closed, StepFacts{}, "protocol.Release {0}"},
		"the ledgers cannot be told":                 {v1alpha1.StepPlanned, paused, open, StepFacts{Settled: Unknown}, "wait 5s: its place could not be given back"},
		"then the target":                            {v1alpha1.StepPlanned, nil, closed, StepFacts{Settled: Yes}, "protocol.ReleaseTarget {0}"},
		"then the target of a plan that is paused":   {v1alpha1.StepPlanned, paused, open, StepFacts{Settled: Yes}, "protocol.ReleaseTarget {0}"},
		"the claim cannot be written":                {v1alpha1.StepPlanned, paused, open, StepFacts{Settled: Yes, Let: Unknown}, "wait 5s: the target could not be let go of"},
		"both are given back, which is stored":       {v1alpha1.StepPlanned, nil, closed, StepFacts{Settled: Yes, Let: Yes}, "Planned"},
		"a pause goes on":                            {v1alpha1.StepPlanned, func(s *State) { paused(s); returned(s) }, open, StepFacts{Settled: Yes, Let: Yes}, "wait: it is paused"},
		"what is open again is given back before":    {v1alpha1.StepPlanned, nil, open, StepFacts{}, "protocol.Release {0}"},
		"what is given back is asked for once more":  {v1alpha1.StepPlanned, returned, open, StepFacts{Authorized: Yes, Mirror: &Place{Granted: Yes}}, "protocol.Reserve {0}"},
		"what is about to write keeps its place":     {v1alpha1.StepIntent, paused, open, StepFacts{}, "wait: it is paused"},
		"what has written keeps its place, and ends": {v1alpha1.StepApplied, paused, open, StepFacts{}, "wait: it is paused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.state)
			at := metav1.NewTime(epoch)
			s.Plan.Status.Steps[0].StartTime = &at
			if test.change != nil {
				test.change(s)
			}
			s.Facts.Brakes, s.Facts.Steps = &test.brakes, map[int32]StepFacts{0: test.facts}
			if s.Facts.Store == nil {
				s.Facts.Store = &Store{Ready: true}
			}
			got := Next(s)
			if ends(got) != test.want {
				t.Errorf("got %q, want %q", ends(got), test.want)
			}
			if w, ok := got.(WriteStatus); ok && test.facts.Let == Yes && w.Status.Steps[0].StartTime != nil {
				t.Error("the time of the grant remains although all is given back")
			}
		})
	}
}
