// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func at(d time.Duration) *metav1.Time { return &metav1.Time{Time: epoch.Add(d)} }

// running is a plan of ours that runs, with a step in each of the states, all in one
// batch.
func running(states ...v1alpha1.StepState) *State {
	batch := []int32{}
	for i := range states {
		batch = append(batch, int32(i)) //nolint:gosec // few
	}
	w := newWorld(v1alpha1.ActionReconcile, [][]int32{batch}, false)
	status := &w.plan.Status
	status.Phase, status.Epoch, status.Holder, status.StartTime, status.ObservedGeneration = v1alpha1.PlanRunning, 1, "a", at(0), 1
	for i, state := range states {
		step := v1alpha1.PlanStep{Index: int32(i), State: state} //nolint:gosec // few
		if state != v1alpha1.StepPlanned && state != v1alpha1.StepReserved && state != v1alpha1.StepSkipped {
			step.Intent = &v1alpha1.StepIntentRecord{Epoch: 1, UID: w.objects[i].uid, ResourceVersion: "10", Generation: 1, PreHash: driftedHash, StorageTime: *at(0)}
		}
		if state == v1alpha1.StepApplied || state == v1alpha1.StepVerified {
			step.Result = &v1alpha1.StepResult{ResourceVersion: "11", Hash: desiredHash, Origin: v1alpha1.ResultResponse, RecordTime: *at(0)}
		}
		status.Steps = append(status.Steps, step)
	}
	return &State{Plan: w.plan, Holder: "a", Now: epoch, Health: w.health, Facts: Facts{Brakes: &Brakes{Known: true}, Store: &Store{Ready: true}}}
}

// stored is the step of index 0 in a status that is to be stored; it ends the test
// for every other effect.
func stored(t *testing.T, e Effect) *v1alpha1.PlanStep {
	t.Helper()
	w, ok := e.(WriteStatus)
	if !ok {
		t.Fatalf("next is %T %+v, not a status", e, e)
	}
	return &w.Status.Steps[0]
}

func TestTheFirstStatusAndATakeoverCountAnEpoch(t *testing.T) {
	s := running(v1alpha1.StepIntent)
	s.Holder = "b"
	over, ok := Next(s).(WriteStatus)
	if !ok || over.Status.Epoch != 2 || over.Status.Holder != "b" || over.Status.Steps[0].State != v1alpha1.StepIntent {
		t.Errorf("a takeover stores %+v", over)
	}
	s.Plan.Status = v1alpha1.RemediationPlanStatus{}
	first, ok := Next(s).(WriteStatus)
	if !ok || first.Status.Epoch != 1 || first.Status.Phase != v1alpha1.PlanCreated || first.Status.Counts.Total != 1 || first.Status.ObservedGeneration != 1 {
		t.Errorf("the first status is %+v", first)
	}
}

// What is left to do after the end of a step comes in one order: the ledgers, the
// record, the target.
func TestWhatFollowsTheEndOfAStep(t *testing.T) {
	later := func(why string) Effect { return Wait{Until: epoch.Add(again), Why: why} }
	evidence := &v1alpha1.StepEvidence{Sequence: 7, Digest: "sha256:record"}
	tests := map[string]struct {
		state    v1alpha1.StepState
		settled  v1alpha1.Toggle
		evidence *v1alpha1.StepEvidence
		facts    StepFacts
		want     Effect
	}{
		"the ledgers are told of a success":                 {v1alpha1.StepVerified, "", nil, StepFacts{}, Settle{0, v1alpha1.LedgerSucceeded}},
		"the ledgers are told of a failure":                 {v1alpha1.StepFailed, "", nil, StepFacts{}, Settle{0, v1alpha1.LedgerFailed}},
		"the place of a step that was skipped is released":  {v1alpha1.StepSkipped, "", nil, StepFacts{}, Release{0}},
		"the place of a step that was fenced is released":   {v1alpha1.StepFenced, "", nil, StepFacts{}, Release{0}},
		"ledgers that do not answer are asked again":        {v1alpha1.StepVerified, "", nil, StepFacts{Settled: Unknown}, later("the ledgers could not be told")},
		"the record comes after the ledgers":                {v1alpha1.StepVerified, v1alpha1.Enabled, nil, StepFacts{}, Record{0}},
		"a record that is not stored is written once more":  {v1alpha1.StepVerified, v1alpha1.Enabled, nil, StepFacts{Recorded: Unknown}, later("the record could not be written")},
		"the target comes after the record":                 {v1alpha1.StepVerified, v1alpha1.Enabled, evidence, StepFacts{}, ReleaseTarget{0}},
		"a target that is not let go of is asked for again": {v1alpha1.StepVerified, v1alpha1.Enabled, evidence, StepFacts{Let: Unknown}, later("the target could not be let go of")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.state)
			s.Plan.Status.Steps[0].Settled, s.Plan.Status.Steps[0].Evidence = test.settled, test.evidence
			s.Facts.Steps = map[int32]StepFacts{0: test.facts}
			if diff := cmp.Diff(test.want, Next(s)); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}

// D24 of the review of remediation: each answer of the ledgers and of the records was a
// status of its own.
func TestTheAnswersAfterTheEndOfAStepAreStoredWithTheNextStatus(t *testing.T) {
	evidence := &v1alpha1.StepEvidence{Sequence: 7, Digest: "sha256:record"}
	settled, recorded := StepFacts{Settled: Yes}, StepFacts{Settled: Yes, Recorded: Yes, Evidence: evidence}
	released := recorded
	released.Let = Yes
	const verified, planned = v1alpha1.StepVerified, v1alpha1.StepPlanned
	tests := map[string]struct {
		states []v1alpha1.StepState
		facts  map[int32]StepFacts
		want   string // the next effect, or the phase and the states of a status
	}{
		"the record comes before any status": {[]v1alpha1.StepState{verified}, map[int32]StepFacts{0: settled}, "protocol.Record {0}"},
		"so does the target":                 {[]v1alpha1.StepState{verified}, map[int32]StepFacts{0: recorded}, "protocol.ReleaseTarget {0}"},
		"the end of the plan has them":       {[]v1alpha1.StepState{verified}, map[int32]StepFacts{0: released}, "Succeeded: Verified settled recorded"},
		"the next step is asked for first":   {[]v1alpha1.StepState{verified, planned}, map[int32]StepFacts{0: released}, "protocol.Authorize {1}"},
		"the grant of the next step has them": {[]v1alpha1.StepState{verified, planned}, map[int32]StepFacts{
			0: released, 1: {Authorized: Yes, Mirror: &Place{Granted: Yes}, Place: &Place{Granted: Yes}, Claimed: Yes},
		}, "Running: Verified settled recorded, Reserved"},
		"a wait stores them first": {[]v1alpha1.StepState{verified, planned}, map[int32]StepFacts{0: released, 1: {Authorized: Unknown}},
			"Running: Verified settled recorded, Planned"},
		"records that do not answer hold back no settlement": {[]v1alpha1.StepState{verified}, map[int32]StepFacts{0: {Settled: Yes, Recorded: Unknown}},
			"Running: Verified settled"},
		"nor does a target that is not let go of": {[]v1alpha1.StepState{verified}, map[int32]StepFacts{0: {Settled: Yes, Recorded: Yes, Evidence: evidence, Let: Unknown}},
			"Running: Verified settled recorded"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.states...)
			s.Facts.Steps = test.facts
			next := Next(s)
			got := text(next)
			if w, ok := next.(WriteStatus); ok {
				var steps []string
				for i := range w.Status.Steps {
					step := &w.Status.Steps[i]
					line := string(step.State)
					if step.Settled == v1alpha1.Enabled {
						line += " settled"
					}
					if step.Evidence != nil {
						line += " recorded"
					}
					steps = append(steps, line)
				}
				got = string(w.Status.Phase) + ": " + strings.Join(steps, ", ")
			}
			if got != test.want {
				t.Errorf("next is %q, want %q", got, test.want)
			}
			if w, ok := next.(WriteStatus); ok && w.Status.Phase == v1alpha1.PlanRunning && test.facts[1].Place == nil {
				s.Plan.Status = w.Status
				if wait, ok := Next(s).(Wait); !ok {
					t.Errorf("then it is to %T, and not to wait", wait)
				}
			}
		})
	}
}

func TestAPlanEndsByHowItsStepsEnded(t *testing.T) {
	const verified, skipped, failed, fenced = v1alpha1.StepVerified, v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced
	tests := map[string]struct {
		states []v1alpha1.StepState
		reason v1alpha1.StepReason // of what was skipped
		phase  v1alpha1.PlanPhase
		counts v1alpha1.PlanCounts
	}{
		"all succeeded":                      {[]v1alpha1.StepState{verified, verified}, "", v1alpha1.PlanSucceeded, v1alpha1.PlanCounts{Total: 2, Succeeded: 2}},
		"as desired already is a success":    {[]v1alpha1.StepState{verified, skipped}, v1alpha1.ReasonAlreadyDesired, v1alpha1.PlanSucceeded, v1alpha1.PlanCounts{Total: 2, Succeeded: 2}},
		"one succeeded, one was skipped":     {[]v1alpha1.StepState{verified, skipped}, "", v1alpha1.PlanPartialSuccess, v1alpha1.PlanCounts{Total: 2, Succeeded: 1, Skipped: 1}},
		"one succeeded, one failed":          {[]v1alpha1.StepState{verified, failed}, "", v1alpha1.PlanPartialSuccess, v1alpha1.PlanCounts{Total: 2, Succeeded: 1, Failed: 1}},
		"one failed, the rest was skipped":   {[]v1alpha1.StepState{failed, skipped}, "", v1alpha1.PlanFailed, v1alpha1.PlanCounts{Total: 2, Failed: 1, Skipped: 1}},
		"all were skipped, or fenced":        {[]v1alpha1.StepState{skipped, fenced}, v1alpha1.ReasonTargetMoved, v1alpha1.PlanSuperseded, v1alpha1.PlanCounts{Total: 2, Skipped: 2}},
		"something kept it from each target": {[]v1alpha1.StepState{skipped, skipped}, v1alpha1.ReasonNotAllowed, v1alpha1.PlanSkipped, v1alpha1.PlanCounts{Total: 2, Skipped: 2}},
		"skipped for an unknown reason":      {[]v1alpha1.StepState{skipped, skipped}, "Odd", v1alpha1.PlanSkipped, v1alpha1.PlanCounts{Total: 2, Skipped: 2}},
		"one was fenced, another succeeded":  {[]v1alpha1.StepState{fenced, verified}, "", v1alpha1.PlanPartialSuccess, v1alpha1.PlanCounts{Total: 2, Succeeded: 1, Skipped: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.states...)
			s.Facts.Steps = map[int32]StepFacts{}
			status := &s.Plan.Status
			status.DeferralReason, status.ResumeTime = "the window is closed", at(time.Hour)
			for i := range status.Steps {
				step := &status.Steps[i]
				step.Settled, step.Evidence = v1alpha1.Enabled, &v1alpha1.StepEvidence{Sequence: 1}
				if step.State == skipped {
					step.Reason = test.reason
				}
				if step.State == fenced {
					step.Reason = v1alpha1.ReasonStopped
				}
				s.Facts.Steps[step.Index] = StepFacts{Let: Yes}
			}
			e, ok := Next(s).(WriteStatus)
			if !ok || e.Status.Phase != test.phase || e.Status.DeferralReason != "" || e.Status.ResumeTime != nil || !e.Status.CompletionTime.Time.Equal(epoch) {
				t.Errorf("the plan ends as %+v", e.Status)
			}
			if diff := cmp.Diff(test.counts, e.Status.Counts); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

// Whoever did not see the answer to a write reads it off the target. Only what is
// certain counts as not written.
func TestWhatATargetTellsOfAnIntent(t *testing.T) {
	is := func(change func(*Target)) Target {
		read := Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash, Ready: Yes}
		change(&read)
		return read
	}
	tests := map[string]struct {
		step   func(*v1alpha1.PlanStep)
		target Target
		want   came
	}{
		"it is as before":                            {nil, is(func(*Target) {}), cameNothing},
		"it is as it is to be":                       {nil, is(func(t *Target) { t.Hash, t.ResourceVersion, t.Generation = desiredHash, "11", 2 }), cameStored},
		"it is gone":                                 {nil, Target{Read: No}, cameGone},
		"another object has its name":                {nil, is(func(t *Target) { t.UID = "other" }), cameGone},
		"it cannot be read":                          {nil, is(func(t *Target) { t.Read = Unknown }), cameUnknown},
		"it was not read":                            {nil, is(func(t *Target) { t.Read = NotAsked }), cameUnknown},
		"the intent is lost":                         {func(s *v1alpha1.PlanStep) { s.Intent = nil }, is(func(*Target) {}), cameUnknown},
		"its status was written":                     {nil, is(func(t *Target) { t.ResourceVersion = "12" }), cameNothing},
		"its spec was written, and put back":         {nil, is(func(t *Target) { t.ResourceVersion, t.Generation = "12", 3 }), cameMoved},
		"its labels were written":                    {nil, is(func(t *Target) { t.ResourceVersion, t.Hash = "12", "pl1:other" }), cameMoved},
		"its kind has no generation":                 {func(s *v1alpha1.PlanStep) { s.Intent.Generation = 0 }, is(func(t *Target) { t.ResourceVersion, t.Generation = "12", 0 }), cameMoved},
		"it is as the fence left it":                 {func(s *v1alpha1.PlanStep) { s.Fence, s.Intent.Generation = "12", 0 }, is(func(t *Target) { t.ResourceVersion = "12" }), cameNothing},
		"it was written after the fence":             {func(s *v1alpha1.PlanStep) { s.Fence, s.Intent.Generation = "12", 0 }, is(func(t *Target) { t.ResourceVersion = "13" }), cameMoved},
		"without a fence an empty version is none":   {func(s *v1alpha1.PlanStep) { s.Intent.Generation = 0 }, is(func(t *Target) { t.ResourceVersion = "" }), cameMoved},
		"it was to be made, and is not there":        {func(s *v1alpha1.PlanStep) { s.Intent.UID = "" }, Target{Read: No}, cameNotThere},
		"it was to be made, and is there":            {func(s *v1alpha1.PlanStep) { s.Intent.UID = "" }, is(func(t *Target) { t.Hash = desiredHash }), cameStored},
		"it was to be made, and another was made":    {func(s *v1alpha1.PlanStep) { s.Intent.UID = "" }, is(func(*Target) {}), cameMoved},
		"it was to be made, and nobody can say more": {func(s *v1alpha1.PlanStep) { s.Intent.UID = "" }, Target{Read: Unknown}, cameUnknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepIntent)
			step := &s.Plan.Status.Steps[0]
			if test.step != nil {
				test.step(step)
			}
			if got := s.came(step, &test.target); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
	t.Run("a lost intent writes nothing, whatever was read and tried", func(t *testing.T) {
		s := running(v1alpha1.StepIntent)
		s.Plan.Status.Steps[0].Intent = nil
		target := is(func(*Target) {})
		s.Facts.Steps = map[int32]StepFacts{0: {Target: &target, Tried: &Write{Result: Stored}}}
		if e, ok := Next(s).(Wait); !ok || !e.Until.Equal(epoch.Add(again)) {
			t.Errorf("next is %+v", Next(s))
		}
	})
}

func TestWhatWasProvenNotToBeWrittenIsIntendedAgainWithoutItsFence(t *testing.T) {
	s := running(v1alpha1.StepIntent)
	s.Plan.Status.Steps[0].Fence = "12"
	s.Plan.Status.Epoch = 3
	target := Target{Read: Yes, UID: "uid-0", ResourceVersion: "12", Generation: 1, Hash: driftedHash}
	s.Facts.Steps = map[int32]StepFacts{0: {Authorized: Yes, Target: &target, Revision: Yes, Tried: &Write{Result: Stored, Hash: desiredHash}}}
	step := stored(t, Next(s))
	want := &v1alpha1.StepIntentRecord{Epoch: 3, UID: "uid-0", ResourceVersion: "12", Generation: 1, PreHash: driftedHash, StorageTime: *at(0)}
	if diff := cmp.Diff(want, step.Intent); diff != "" || step.Fence != "" || step.Attempts != 1 || step.State != v1alpha1.StepIntent || len(step.Logs) != 1 {
		t.Errorf("step %+v; intent (-want +got):\n%s", step, diff)
	}
}

// A request of an earlier run may be under way, so an executor writes at once only
// by the intent that it has stored itself.
func TestOnlyAnIntentOfThisRunIsWrittenAtOnce(t *testing.T) {
	const once, more = "protocol.WriteTarget {0}", "store Running, step Intent "
	tests := map[string]struct {
		change func(*State, *v1alpha1.PlanStep, *StepFacts)
		want   string
	}{
		"an intent of this run is written":                  {func(*State, *v1alpha1.PlanStep, *StepFacts) {}, once},
		"an intent of an earlier epoch is stored once more": {func(s *State, _ *v1alpha1.PlanStep, _ *StepFacts) { s.Plan.Status.Epoch = 2 }, more},
		"so is an intent on an earlier version":             {func(_ *State, step *v1alpha1.PlanStep, _ *StepFacts) { step.Intent.ResourceVersion = "9" }, more},
		"so is an intent that was fenced":                   {func(_ *State, step *v1alpha1.PlanStep, _ *StepFacts) { step.Fence = "10" }, more},
		"an intent without a dry run is tried":              {func(_ *State, _ *v1alpha1.PlanStep, f *StepFacts) { f.Tried = nil }, "protocol.Try {0}"},
		"a dry run without an answer counts as none":        {func(_ *State, _ *v1alpha1.PlanStep, f *StepFacts) { f.Tried.Result = Lost }, "wait 2s: the dry run has no answer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepIntent)
			target := Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash}
			facts := StepFacts{Authorized: Yes, Target: &target, Revision: Yes, Tried: &Write{Result: Stored, Hash: desiredHash}}
			test.change(s, &s.Plan.Status.Steps[0], &facts)
			s.Facts.Steps = map[int32]StepFacts{0: facts}
			if got := text(Next(s)); got != test.want {
				t.Errorf("next is %q, want %q", got, test.want)
			}
		})
	}
}

// A change of the target has the executor look again before that.
func TestATargetIsReadAgainWhenItsStabilizationEnds(t *testing.T) {
	tests := map[string]struct {
		since time.Duration
		want  time.Duration
	}{
		"it has all of the stabilization before it": {0, 10 * time.Second},
		"it has a second of it":                     {-9 * time.Second, time.Second},
		"it has less than a second":                 {-9500 * time.Millisecond, 500 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepApplied)
			s.Plan.Status.Steps[0].HealthyTime = at(test.since)
			target := Target{Read: Yes, UID: "uid-0", ResourceVersion: "11", Generation: 2, Hash: desiredHash, Ready: Yes}
			s.Facts.Steps = map[int32]StepFacts{0: {Target: &target}}
			want := Wait{Until: epoch.Add(test.want), Why: "it has to stay healthy for a while"}
			if diff := cmp.Diff(Effect(want), Next(s)); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("without a stabilization it is verified at once", func(t *testing.T) {
		s := running(v1alpha1.StepApplied)
		s.Health.Stabilization = 0
		target := Target{Read: Yes, UID: "uid-0", ResourceVersion: "11", Generation: 2, Hash: desiredHash, Ready: Yes}
		s.Facts.Steps = map[int32]StepFacts{0: {Target: &target}}
		if step := stored(t, Next(s)); step.State != v1alpha1.StepVerified || step.HealthyTime != nil {
			t.Errorf("stored is %+v", step)
		}
	})
}

// A webhook, or a writer, changed the content beside the token of a restart: the step was
// verified, although its target was not as it should be.
func TestARestartIsNotVerifiedOverOtherContent(t *testing.T) {
	tests := map[string]struct {
		phase v1alpha1.PlanPhase
		hash  string
		want  string
	}{
		"with its content it is verified":                      {v1alpha1.PlanRunning, driftedHash, "Verified"},
		"with other content it fails":                          {v1alpha1.PlanRunning, desiredHash, "Failed TargetMoved"},
		"with its content it is verified at the end of a plan": {v1alpha1.PlanSealing, driftedHash, "Verified"},
		"with other content it fails at the end of a plan":     {v1alpha1.PlanSealing, desiredHash, "Failed Stopped"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepApplied)
			s.Plan.Status.Phase, s.Plan.Status.EndingAs = test.phase, v1alpha1.PlanCanceled
			s.Plan.Spec.Plan.Targets[0].Action, s.Plan.Spec.Plan.Targets[0].DesiredHash = v1alpha1.ActionRestart, driftedHash
			s.Plan.Status.Steps[0].HealthyTime = at(-time.Hour)
			target := Target{Read: Yes, UID: "uid-0", ResourceVersion: "11", Generation: 2, Hash: test.hash, RestartedFor: Token(s.Plan, 0), Ready: Yes}
			s.Facts.Steps = map[int32]StepFacts{0: {Target: &target}}
			if got := ends(Next(s)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
