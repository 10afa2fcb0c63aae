// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// D13 of the review of remediation: a person changed the policy in a hurry, and the plan
// went on to its next target.
func TestNoStepBeginsAfterItsPolicyHasChanged(t *testing.T) {
	changed := Brakes{Known: true, Superseded: "its policy has changed"}
	tests := map[string]struct {
		states []v1alpha1.StepState
		want   string
	}{
		"steps that have written nothing end": {
			[]v1alpha1.StepState{v1alpha1.StepVerified, v1alpha1.StepReserved, v1alpha1.StepPlanned},
			"Verified, Skipped PolicyChanged, Skipped PolicyChanged",
		},
		"a step that may have written is settled first": {
			[]v1alpha1.StepState{v1alpha1.StepIntent, v1alpha1.StepPlanned}, "protocol.ReadTarget {0}",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.states...)
			s.Facts.Brakes = &changed
			for i := range s.Plan.Status.Steps {
				if step := &s.Plan.Status.Steps[i]; step.State == v1alpha1.StepVerified {
					step.Settled, step.Evidence = v1alpha1.Enabled, &v1alpha1.StepEvidence{}
					s.Facts = s.Facts.Learn(step.Index, func(f *StepFacts) { f.Let = Yes })
				}
			}
			if got := ends(Next(s)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// ends describes the steps of a status that is to be stored, and another effect as it is.
func ends(e Effect) string {
	w, ok := e.(WriteStatus)
	if !ok {
		return text(e)
	}
	var out string
	for i := range w.Status.Steps {
		if i > 0 {
			out += ", "
		}
		step := &w.Status.Steps[i]
		out += string(step.State)
		if step.Reason != "" {
			out += " " + string(step.Reason)
		}
	}
	return out
}

// D7 of the review of remediation: a plan that had waited for its window wrote what was
// older than the policy's maximum.
func TestADriftThatBecameTooOldIsNotPutBack(t *testing.T) {
	const oldest = 24 * time.Hour
	tests := map[string]struct {
		age, oldest time.Duration
		asked       v1alpha1.PlanVerb
		state       v1alpha1.StepState
		want        string
	}{
		"just not too old":                   {oldest, oldest, "", v1alpha1.StepPlanned, "protocol.Authorize {0}"},
		"too old":                            {oldest + time.Second, oldest, "", v1alpha1.StepPlanned, "Skipped AboveMaximumAge"},
		"too old since its place was taken":  {oldest + time.Second, oldest, "", v1alpha1.StepReserved, "Skipped AboveMaximumAge"},
		"a person executes the plan":         {oldest + time.Second, oldest, v1alpha1.PlanExecute, v1alpha1.StepPlanned, "protocol.Authorize {0}"},
		"the policy has no maximum":          {oldest + time.Second, 0, "", v1alpha1.StepPlanned, "protocol.Authorize {0}"},
		"a step that may have written it is": {oldest + time.Second, oldest, "", v1alpha1.StepIntent, "protocol.ReadTarget {0}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.state)
			s.Plan.Spec.Control.Verb = test.asked
			s.Plan.Spec.Plan.Targets[0].FirstSeenTime.Time = epoch.Add(-test.age)
			s.Facts.Brakes = &Brakes{Known: true, MaximumDriftAge: test.oldest}
			if got := ends(Next(s)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// An age that was unknown was told as one above the maximum.
func TestAStepOfUnknownAgeIsToldAsSuch(t *testing.T) {
	s := running(v1alpha1.StepPlanned)
	s.Plan.Spec.Plan.Targets[0].FirstSeenTime = metav1.Time{}
	s.Facts.Brakes = &Brakes{Known: true, MaximumDriftAge: time.Hour}
	e := Next(s)
	if got := ends(e); got != "Skipped AboveMaximumAge" {
		t.Fatalf("got %q", got)
	}
	const want = "the age of the drift is unknown, and may be more than 1h0m0s: a person has to decide"
	if got := e.(WriteStatus).Status.Steps[0].Message; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// D8 of the review of remediation: a plan by hand wrote ten of eleven objects at once.
func TestAStepBeyondTheLimitOfTargetsIsSkipped(t *testing.T) {
	const beyond = "Skipped BlastRadius"
	tests := map[string]struct {
		states []v1alpha1.StepState
		most   int
		want   string
	}{
		"no limit is known":                {[]v1alpha1.StepState{v1alpha1.StepReserved, v1alpha1.StepPlanned}, 0, "protocol.Authorize {0}"},
		"there is room for one more":       {[]v1alpha1.StepState{v1alpha1.StepVerified, v1alpha1.StepPlanned}, 2, "protocol.Authorize {1}"},
		"one was written":                  {[]v1alpha1.StepState{v1alpha1.StepVerified, v1alpha1.StepPlanned}, 1, "Verified, " + beyond},
		"a later one was written":          {[]v1alpha1.StepState{v1alpha1.StepPlanned, v1alpha1.StepVerified}, 1, beyond + ", Verified"},
		"one was skipped":                  {[]v1alpha1.StepState{v1alpha1.StepSkipped, v1alpha1.StepPlanned}, 1, "protocol.Authorize {1}"},
		"one was fenced":                   {[]v1alpha1.StepState{v1alpha1.StepFenced, v1alpha1.StepPlanned}, 1, "protocol.Authorize {1}"},
		"two are granted, and one may be":  {[]v1alpha1.StepState{v1alpha1.StepReserved, v1alpha1.StepReserved}, 1, beyond + ", Reserved"},
		"the one that is granted goes on":  {[]v1alpha1.StepState{v1alpha1.StepSkipped, v1alpha1.StepReserved}, 1, "protocol.Authorize {1}"},
		"a step that is under way goes on": {[]v1alpha1.StepState{v1alpha1.StepIntent, v1alpha1.StepPlanned}, 1, "protocol.ReadTarget {0}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.states...)
			s.Facts.Brakes = &Brakes{Known: true, MaximumTargets: test.most}
			for i := range s.Plan.Status.Steps {
				if step := &s.Plan.Status.Steps[i]; ended(step) {
					step.Settled, step.Evidence = v1alpha1.Enabled, &v1alpha1.StepEvidence{}
					s.Facts = s.Facts.Learn(step.Index, func(f *StepFacts) { f.Let = Yes })
				}
			}
			if got := ends(Next(s)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The stage of an escalation was asked when the plan was made, and not before its steps.
func TestADriftThatBecameMilderIsNotPutBack(t *testing.T) {
	const mild = "severity Low is below High"
	tests := map[string]struct {
		mild  string
		asked v1alpha1.PlanVerb
		hash  string
		gone  bool
		want  string
	}{
		"it is as severe as before":     {"", "", driftedHash, false, "protocol.LoadRevision {0}"},
		"it is milder":                  {mild, "", driftedHash, false, "Skipped BelowSeverity"},
		"an object that is gone is too": {mild, "", "", true, "Skipped BelowSeverity"},
		"it is milder, and has moved":   {mild, "", "pl1:other", false, "Skipped TargetMoved"},
		"a person executes the plan":    {mild, v1alpha1.PlanExecute, driftedHash, false, "protocol.LoadRevision {0}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepReserved)
			s.Plan.Spec.Control.Verb = test.asked
			target := &Target{Read: Yes, UID: s.Plan.Spec.Plan.Targets[0].UID, Hash: test.hash, ResourceVersion: "7", Mild: test.mild}
			if test.gone {
				s.Plan.Spec.Plan.Targets[0].UID, target.Read = "", No
			}
			s.Facts = s.Facts.Learn(0, func(f *StepFacts) { f.Target, f.Authorized = target, Yes })
			if got := ends(Next(s)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
