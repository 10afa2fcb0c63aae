// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// again is when what could not be learned is asked again.
	again = 5 * time.Second
	// poll is how soon a target is read again of which a request had no answer.
	poll = 2 * time.Second
	// maxAttempts to write a target that others write all the time.
	maxAttempts = 8
)

// Next says what is to be done. Before the plan waits, all is stored that is known, and the
// verdicts on its steps are copied: the plan may wait for a breaker that one of them turns.
func Next(s *State) Effect {
	e := s.next()
	if _, waits := e.(Wait); !waits {
		return e
	}
	if s.noteEnds(s.Plan.Status.DeepCopy()) {
		return s.write(func(*v1alpha1.RemediationPlanStatus) {})
	}
	if copies := s.copyEffects(); copies != nil {
		if _, waits := copies.(Wait); !waits {
			return copies
		}
	}
	return e
}

func (s *State) next() Effect {
	status := &s.Plan.Status
	switch {
	case Final(status.Phase):
		return s.announce() // a plan ends only when all is recorded and let go of
	case status.Phase == "":
		return s.begin()
	case status.Holder != s.Holder:
		return s.takeOver()
	case s.Facts.Brakes == nil:
		return Look{Idle: s.idle()}
	}
	switch status.Phase {
	case v1alpha1.PlanSealing:
		return s.seal()
	case v1alpha1.PlanPaused:
		return s.paused()
	case v1alpha1.PlanCreated, v1alpha1.PlanScheduled, v1alpha1.PlanDeferred, v1alpha1.PlanRunning:
		return s.run()
	case v1alpha1.PlanSucceeded, v1alpha1.PlanPartialSuccess, v1alpha1.PlanFailed, v1alpha1.PlanCanceled, v1alpha1.PlanSuperseded, v1alpha1.PlanSkipped:
	}
	return Wait{Why: "phase " + string(status.Phase) + " is one that this version does not know"}
}

// idle says that the plan only waits for a person to resume it, or for targets that it has
// written to be healthy: no step is about to begin or to write.
func (s *State) idle() bool {
	if s.Plan.Status.Phase != v1alpha1.PlanRunning {
		return s.Plan.Status.Phase == v1alpha1.PlanPaused
	}
	batch, done := s.batch()
	waits := false
	for i := range s.Plan.Status.Steps {
		step := &s.Plan.Status.Steps[i]
		switch {
		case ended(step):
		case step.State == v1alpha1.StepApplied:
			waits = true
		case step.State != v1alpha1.StepPlanned || slices.Contains(batch.Steps, step.Index):
			return false
		}
	}
	return waits && !done
}

// Final says that a phase is the end of a plan.
func Final(p v1alpha1.PlanPhase) bool {
	switch p {
	case v1alpha1.PlanSucceeded, v1alpha1.PlanPartialSuccess, v1alpha1.PlanFailed, v1alpha1.PlanCanceled, v1alpha1.PlanSuperseded, v1alpha1.PlanSkipped:
		return true
	case v1alpha1.PlanCreated, v1alpha1.PlanScheduled, v1alpha1.PlanDeferred, v1alpha1.PlanRunning, v1alpha1.PlanPaused, v1alpha1.PlanSealing:
	}
	return false
}

// write is a status to store, made from the present one and from what is known of the steps
// that have ended.
func (s *State) write(change func(*v1alpha1.RemediationPlanStatus)) WriteStatus {
	next := s.Plan.Status.DeepCopy()
	s.noteEnds(next)
	change(next)
	next.ObservedGeneration = s.Plan.Generation
	count(next)
	NoteEvents(next)
	return WriteStatus{Status: *next}
}

// begin writes the first status: all steps, and who has the plan.
func (s *State) begin() Effect {
	if why := malformed(&s.Plan.Spec.Plan); why != "" {
		return s.write(func(n *v1alpha1.RemediationPlanStatus) {
			n.Epoch, n.Holder, n.EndedReason = n.Epoch+1, s.Holder, why
			s.ends(n, v1alpha1.PlanFailed)
		})
	}
	return s.write(func(n *v1alpha1.RemediationPlanStatus) {
		n.Phase, n.Epoch, n.Holder = v1alpha1.PlanCreated, n.Epoch+1, s.Holder
		n.Steps = make([]v1alpha1.PlanStep, len(s.Plan.Spec.Plan.Targets))
		for i := range n.Steps {
			n.Steps[i] = v1alpha1.PlanStep{Index: int32(i), State: v1alpha1.StepPlanned} //nolint:gosec // at most ten
		}
	})
}

// malformed says why a plan cannot be carried out that the API server has stored all the
// same, as before its schema had a rule about that; empty when it can.
func malformed(plan *v1alpha1.PlannedRemediation) string {
	named := make([]int, len(plan.Targets))
	for i := range plan.Batches {
		if int(plan.Batches[i].Order) != i {
			return fmt.Sprintf("spec.plan.batches[%d].order is %d: the order of a batch must be its index", i, plan.Batches[i].Order)
		}
		for _, step := range plan.Batches[i].Steps {
			if step < 0 || int(step) >= len(named) {
				return fmt.Sprintf("spec.plan.batches[%d].steps names target %d, which is not there", i, step)
			}
			named[step]++
		}
	}
	for i, times := range named {
		if times != 1 {
			return fmt.Sprintf("spec.plan.batches name target %d %d times: once is needed", i, times)
		}
	}
	return ""
}

// takeOver makes the plan ours. What the one before us decided and has not
// stored by then cannot be stored any more.
func (s *State) takeOver() Effect {
	return s.write(func(n *v1alpha1.RemediationPlanStatus) { n.Epoch, n.Holder = n.Epoch+1, s.Holder })
}

func (s *State) at() *metav1.Time { t := metav1.NewTime(s.Now); return &t }

func (s *State) wait(d time.Duration, why string) Effect { return Wait{Until: s.Now.Add(d), Why: why} }

// ended says that a step does nothing any more.
func ended(step *v1alpha1.PlanStep) bool {
	switch step.State {
	case v1alpha1.StepVerified, v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced:
		return true
	case v1alpha1.StepPlanned, v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied:
	}
	return false
}

// count sums up how the steps ended.
func count(n *v1alpha1.RemediationPlanStatus) {
	n.Counts = v1alpha1.PlanCounts{Total: int32(len(n.Steps))} //nolint:gosec // at most ten
	for i := range n.Steps {
		switch step := &n.Steps[i]; step.State {
		case v1alpha1.StepVerified:
			n.Counts.Succeeded++
		case v1alpha1.StepFailed:
			n.Counts.Failed++
		case v1alpha1.StepSkipped:
			if step.Reason == v1alpha1.ReasonAlreadyDesired {
				n.Counts.Succeeded++
				continue
			}
			n.Counts.Skipped++
		case v1alpha1.StepFenced:
			n.Counts.Skipped++
		case v1alpha1.StepPlanned, v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied:
		}
	}
}
