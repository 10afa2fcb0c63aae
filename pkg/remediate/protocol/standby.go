// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/bluegreen"
)

// StandsBy says that a standby answers the requests of a target while the step writes it. A target
// that is gone answers no requests, and is made again without a standby.
func StandsBy(plan *v1alpha1.PlannedRemediation, step int32) bool {
	return plan.Strategy == v1alpha1.StrategyBlueGreen && plan.Targets[step].UID != ""
}

// serveByStandby brings the requests of the target to a standby; nil when the standby has them all,
// or the step needs none. refused says why there is none.
func (s *State) serveByStandby(step *v1alpha1.PlanStep, f StepFacts) (e Effect, refused string) {
	switch {
	case !StandsBy(&s.Plan.Spec.Plan, step.Index):
		return nil, ""
	case s.Health == nil:
		return s.wait(again, "its policy, which bounds the wait for a standby, could not be read"), ""
	}
	d := bluegreen.Serve(s.standbyInput(step, f))
	if d.Refused != "" {
		return nil, d.Refused
	}
	return s.carryStandby(step, d), ""
}

// retireStandby gives the requests back and removes the standby; nil when none is left.
func (s *State) retireStandby(step *v1alpha1.PlanStep, f StepFacts) Effect {
	if step.Standby == nil {
		return nil
	}
	d := bluegreen.Retire(s.standbyInput(step, f))
	if d.Refused != "" {
		return s.wait(again, d.Refused)
	}
	return s.carryStandby(step, d)
}

// finishStandbys goes on, in a plan that is paused, with the steps that have written while a standby
// answers the requests: a pause keeps no requests away from a target that is healthy again.
func (s *State) finishStandbys() Effect {
	var waits *Wait
	for i := range s.Plan.Status.Steps {
		step := &s.Plan.Status.Steps[i]
		if step.State != v1alpha1.StepApplied || step.Standby == nil {
			continue
		}
		e := s.step(step)
		wait, ok := e.(Wait)
		if !ok {
			return e
		}
		waits = soonest(waits, wait)
	}
	if waits == nil {
		return nil
	}
	return *waits
}

func (s *State) standbyInput(step *v1alpha1.PlanStep, f StepFacts) *bluegreen.Input {
	in := &bluegreen.Input{
		Stored: step.Standby, Seen: f.Standby, Acted: f.StandbyActed, Evidence: f.StandbyEvidence,
		Now: s.Now, TimeUnknown: s.TimeUnknown, Creatable: creatable, Outlived: outlived,
		Name: func(number int32) string { return nameOfStandby(s.Plan, step.Index, number) },
	}
	if s.Health != nil {
		in.Timeout = s.Health.Timeout
	}
	return in
}

// carryStandby is what a decision about a standby has the executor do; nil when nothing is left to do.
func (s *State) carryStandby(step *v1alpha1.PlanStep, d bluegreen.Decision) Effect {
	switch {
	case d.Done:
		return nil
	case d.Store != nil:
		return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
			n.Standby = d.Store
			note(n, fmt.Sprintf("standby %s: %s", d.Store.Name, d.Store.Phase), at)
		})
	case d.Wait != nil:
		return Wait{Until: d.Wait.Until, Why: d.Wait.Why}
	}
	return CarryStandby{step.Index, d.Act}
}

// StandbyID is the value of [v1alpha1.LabelStandby] of a standby of a step.
func StandbyID(plan *v1alpha1.RemediationPlan, step, number int32) string {
	return fmt.Sprintf("%s.%d.%d", plan.UID, step, number)
}

// nameOfStandby is the name of a standby, which is the same however often it is made.
func nameOfStandby(plan *v1alpha1.RemediationPlan, step, number int32) string {
	sum := sha256.Sum256([]byte(StandbyID(plan, step, number)))
	return "standby-" + hex.EncodeToString(sum[:8])
}
