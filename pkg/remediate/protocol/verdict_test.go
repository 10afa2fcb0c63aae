// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestVerdictsGoIntoAPlanThatWaitsOrHasEnded(t *testing.T) {
	ineffective := v1alpha1.StepEffect{Verdict: v1alpha1.VerdictIneffective, AssessmentName: "p-0"}
	read := func(e *v1alpha1.StepEffect) StepFacts {
		return StepFacts{Assessment: &Assessment{Read: Yes, Effect: e}}
	}
	ends := func(s *State) {
		s.Plan.Status.Phase = v1alpha1.PlanPartialSuccess
		meta.SetStatusCondition(&s.Plan.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionAnnounced, Status: metav1.ConditionTrue, Reason: "Announced"})
	}
	// refuses has the ledgers refuse the second step, which waits for the verdict on the first one.
	refuses := func(s *State) {
		s.Plan.Status.Steps[1] = v1alpha1.PlanStep{Index: 1, State: v1alpha1.StepPlanned}
		s.Facts.Steps[1] = StepFacts{Authorized: Unknown}
	}
	unsettled := func(s *State) { ends(s); s.Plan.Status.Steps[0].Settled = "" }
	recorded := func(judged Answer) StepFacts {
		f := read(&ineffective)
		f.AssessmentRecorded, f.AssessmentEvidence, f.Judged = Yes, &v1alpha1.StepEvidence{Sequence: 9}, judged
		return f
	}
	told := recorded(Yes)
	told.Told, told.Turned = true, v1alpha1.BreakerOpen
	turned := recorded(Yes)
	turned.Turned = v1alpha1.BreakerOpen
	opened := ineffective
	opened.BreakerState = v1alpha1.BreakerOpen
	unrecorded := read(&ineffective)
	unrecorded.AssessmentRecorded = Unknown
	tests := map[string]struct {
		state func(*State)
		of    StepFacts
		want  Effect
	}{
		"a plan that has ended asks for the assessment":      {ends, StepFacts{}, ReadAssessment{0}},
		"so does one that waits":                             {refuses, StepFacts{}, ReadAssessment{0}},
		"the record comes first":                             {ends, read(&ineffective), RecordAssessment{0}},
		"also while another step waits":                      {refuses, read(&ineffective), RecordAssessment{0}},
		"a record that was not written is written again":     {ends, unrecorded, Wait{Until: epoch.Add(again), Why: "the record of the assessment of its effect could not be written"}},
		"then the ledger is told":                            {ends, recorded(NotAsked), ApplyVerdict{0, v1alpha1.VerdictIneffective}},
		"also of a plan that waits":                          {refuses, recorded(NotAsked), ApplyVerdict{0, v1alpha1.VerdictIneffective}},
		"then people are":                                    {ends, recorded(Yes), AnnounceEffect{0, ineffective}},
		"who hear that the verdict opened a breaker":         {ends, turned, AnnounceEffect{0, opened}},
		"a ledger that was not told is told again":           {ends, recorded(Unknown), Wait{Until: epoch.Add(again), Why: "the ledger could not be told the verdict"}},
		"what cannot be read is read again":                  {ends, StepFacts{Assessment: &Assessment{Read: Unknown}}, Wait{Until: epoch.Add(again), Why: "the assessment of its effect could not be read"}},
		"nothing is left to do while it is measured":         {ends, read(nil), Done{}},
		"a step that the ledger knows not to have ended":     {unsettled, read(&ineffective), Done{}},
		"a plan that waits goes on to wait":                  {refuses, read(nil), Wait{Until: epoch.Add(again), Why: "whether the requester may write the target could not be asked"}},
		"also if the assessment cannot be read":              {refuses, StepFacts{Assessment: &Assessment{Read: Unknown}}, Wait{Until: epoch.Add(again), Why: "whether the requester may write the target could not be asked"}},
		"where no effect is assessed, nothing is asked for":  {func(s *State) { ends(s); s.AssessesEffects = false }, StepFacts{}, Done{}},
		"a verdict that the plan has is not asked for again": {func(s *State) { ends(s); s.Plan.Status.Steps[0].Effect = &ineffective }, StepFacts{}, Done{}},
		"a step that wrote nothing says nothing to a ledger": {func(s *State) { ends(s); s.Plan.Status.Steps[0].State = v1alpha1.StepSkipped }, recorded(NotAsked), AnnounceEffect{0, ineffective}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Next(endedWell(t, tc.state, tc.of))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("the plan is last", func(t *testing.T) {
		s := endedWell(t, ends, told)
		s.Plan.Status.Holder = "before"
		x, ok := Next(s).(WriteStatus)
		if !ok || x.Status.Steps[0].Effect.Verdict != v1alpha1.VerdictIneffective || x.Status.Effect != v1alpha1.VerdictIneffective || x.Status.Steps[0].Effect.BreakerState != v1alpha1.BreakerOpen || x.Status.Holder != "a" || x.Status.Epoch != 2 || x.Status.Steps[0].Effect.Evidence.Sequence != 9 {
			t.Errorf("got %+v", x)
		}
	})
}

// endedWell is a plan whose first step has ended, and whose second one wrote nothing.
func endedWell(t *testing.T, state func(*State), of StepFacts) *State {
	t.Helper()
	s := running(v1alpha1.StepVerified, v1alpha1.StepSkipped)
	for i := range s.Plan.Status.Steps {
		step := &s.Plan.Status.Steps[i]
		step.Settled, step.Evidence = v1alpha1.Enabled, &v1alpha1.StepEvidence{Sequence: 1}
		step.CompletionTime = &metav1.Time{Time: epoch.Add(-time.Minute)}
	}
	s.Plan.Status.Steps[1].Effect = &v1alpha1.StepEffect{Verdict: v1alpha1.VerdictInconclusive, AssessmentName: "p-1"}
	of.Let = Yes
	s.AssessesEffects, s.Facts.Steps = true, map[int32]StepFacts{0: of, 1: {Let: Yes}}
	state(s)
	return s
}

func TestTheWorstVerdictIsThatOfThePlan(t *testing.T) {
	step := func(state v1alpha1.StepState, verdict v1alpha1.EffectVerdict) v1alpha1.PlanStep {
		s := v1alpha1.PlanStep{State: state}
		if verdict != "" {
			s.Effect = &v1alpha1.StepEffect{Verdict: verdict}
		}
		return s
	}
	const wrote, skipped = v1alpha1.StepVerified, v1alpha1.StepSkipped
	tests := map[string]struct {
		steps []v1alpha1.PlanStep
		want  v1alpha1.EffectVerdict
	}{
		"without a verdict there is none":    {[]v1alpha1.PlanStep{step(wrote, "")}, ""},
		"a step that wrote nothing has none": {[]v1alpha1.PlanStep{step(skipped, v1alpha1.VerdictInconclusive), step(wrote, v1alpha1.VerdictEffective)}, v1alpha1.VerdictEffective},
		"little knowledge is worse":          {[]v1alpha1.PlanStep{step(wrote, v1alpha1.VerdictInconclusive), step(wrote, v1alpha1.VerdictEffective)}, v1alpha1.VerdictInconclusive},
		"no help is worse than that":         {[]v1alpha1.PlanStep{step(wrote, v1alpha1.VerdictInconclusive), step(wrote, v1alpha1.VerdictIneffective)}, v1alpha1.VerdictIneffective},
		"a write that is undone is worst":    {[]v1alpha1.PlanStep{step(wrote, v1alpha1.VerdictInvalidated), step(wrote, v1alpha1.VerdictIneffective)}, v1alpha1.VerdictInvalidated},
		"a verdict of a later version":       {[]v1alpha1.PlanStep{step(wrote, "Splendid"), step(wrote, v1alpha1.VerdictEffective)}, "Splendid"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := worstOf(tc.steps); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
