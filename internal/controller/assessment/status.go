// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Reasons of the condition Ready, and of others that have no answer yet.
const (
	reasonCompleted  = "Completed"
	reasonFailed     = "Failed"
	reasonInProgress = "InProgress"
	reasonUnknown    = "Unknown"
)

// put puts a decision into the status.
func (s *subject) put(d *effect.Decision) {
	status := &s.next.Status
	status.ObservedGeneration = s.next.Generation
	s.putPhase(d)
	s.putIntegrity(d)
	if d.Reason != "" {
		s.complete(d)
	}
	s.putConditions()
}

// putPhase puts the phase and the schedule. While the time is unknown the phase stays as it is.
func (s *subject) putPhase(d *effect.Decision) {
	status := &s.next.Status
	if !s.timeUnknown || d.Reason != "" || status.Phase == "" {
		status.Phase = v1alpha1.AssessmentPhase(d.Phase)
	}
	if status.Schedule != nil || s.next.Spec.WrittenTime == nil {
		return
	}
	a := effect.ReadStored(s.next)
	schedule := a.Schedule(a.WrittenTime)
	status.Schedule = &v1alpha1.AssessmentSchedule{
		PropagatedTime: metav1.NewTime(schedule.Propagated), StabilizedTime: metav1.NewTime(schedule.Stabilized),
		AlertsTime: metav1.NewTime(schedule.Alerts), DeadlineTime: metav1.NewTime(schedule.Deadline),
	}
}

// putIntegrity puts what the look found. A look without an answer changes it at the end alone.
func (s *subject) putIntegrity(d *effect.Decision) {
	status := &s.next.Status
	if d.Integrity == effect.IntegrityUnknown && d.Reason == "" && status.Integrity != "" {
		return
	}
	status.Integrity = v1alpha1.SpecIntegrity(d.Integrity)
	if s.sight.Read {
		status.CurrentHash = s.sight.Hash
	}
}

// complete puts the end.
func (s *subject) complete(d *effect.Decision) {
	status, components := &s.next.Status, effect.ReadComponents(&s.next.Status)
	status.Reason = v1alpha1.AssessmentReason(d.Reason)
	status.Verdict = v1alpha1.EffectVerdict(effect.VerdictOf(d.Reason, d.Integrity, &components))
	status.Score, status.Formula = effect.ScoreOf(d.Reason, &components), effect.Formula
	status.Message = diff.TruncateText(s.summary(d), maxMessage)
	status.CompletionTime = s.timeNow()
	if d.Reason == effect.AlertDecayTimeout {
		status.AlertDecay = v1alpha1.DecayTimedOut
	}
}

// summary says for people why an assessment ended as it did.
func (s *subject) summary(d *effect.Decision) string {
	switch d.Reason {
	case effect.NoExecution:
		if s.next.Spec.Subject.Release != nil {
			return "the run moved no requests"
		}
		return "the step did not write"
	case effect.SpecDrift:
		switch {
		case s.next.Spec.Subject.Release != nil:
			return "the variation that serves the release is not the one that the run left"
		case s.sight.Gone:
			return "the target is gone"
		case s.sight.UID != s.next.Spec.Target.UID:
			return "the target was replaced by another object of its name"
		}
		return "another writer has changed the target since the write"
	case effect.Full, effect.Partial, effect.Expired, effect.MetricsTimedOut, effect.AlertDecayTimeout:
	}
	if d.Integrity == effect.IntegrityUnknown {
		return "it is not known whether the write is in effect" + because(s.sight.Why)
	}
	for i := range s.next.Status.Components {
		if c := &s.next.Status.Components[i]; c.Effect == v1alpha1.EffectAgainst || c.State == v1alpha1.ComponentNotAnswered {
			return string(c.Name) + because(c.Message)
		}
	}
	return "the write is in effect"
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + diff.Printable(why)
}

// fail ends an assessment whose spec cannot be carried out.
func (s *subject) fail(why string) {
	status := &s.next.Status
	status.ObservedGeneration = s.next.Generation
	status.Phase, status.Message, status.CompletionTime = v1alpha1.AssessmentFailed, diff.TruncateText(why, maxMessage), s.timeNow()
	s.putConditions()
}

// putConditions says by conditions what the status says by fields.
func (s *subject) putConditions() {
	status := &s.next.Status
	set := condition.Set{Conditions: &status.Conditions, Generation: s.next.Generation, Now: s.now}
	phase := fmt.Sprintf("the phase is %s", status.Phase)
	switch status.Phase {
	case v1alpha1.AssessmentCompleted:
		set.Put(v1alpha1.ConditionReady, metav1.ConditionTrue, reasonCompleted, fmt.Sprintf("the verdict is %s: %s", status.Verdict, status.Message))
		set.Put(v1alpha1.ConditionAssessmentComplete, metav1.ConditionTrue, string(status.Reason), status.Message)
	case v1alpha1.AssessmentFailed:
		set.Put(v1alpha1.ConditionReady, metav1.ConditionFalse, reasonFailed, status.Message)
		set.Put(v1alpha1.ConditionAssessmentComplete, metav1.ConditionFalse, reasonFailed, status.Message)
	case v1alpha1.AssessmentPending, v1alpha1.AssessmentPropagating, v1alpha1.AssessmentStabilizing, v1alpha1.AssessmentAssessing:
		set.Put(v1alpha1.ConditionReady, metav1.ConditionFalse, reasonInProgress, phase)
		set.Put(v1alpha1.ConditionAssessmentComplete, metav1.ConditionFalse, reasonInProgress, phase)
	}
	s.putIntegrityCondition(set)
	s.putDecayCondition(set)
	if s.next.Spec.PostHash != "" {
		set.True(v1alpha1.ConditionPostHashCaptured, "Captured", "the hash is that of the API server's answer to the write")
	} else {
		set.False(v1alpha1.ConditionPostHashCaptured, "NotCaptured", "no answer to a write is known")
	}
}

func (s *subject) putIntegrityCondition(set condition.Set) {
	kind := v1alpha1.ConditionSpecIntegrity
	switch s.next.Status.Integrity {
	case v1alpha1.IntegrityUnchanged:
		set.True(kind, string(v1alpha1.IntegrityUnchanged), "the target is as the write left it")
	case v1alpha1.IntegrityDrifted:
		set.False(kind, string(v1alpha1.IntegrityDrifted), "the target is not as the write left it")
	case v1alpha1.IntegrityUnknown, "":
		set.Put(kind, metav1.ConditionUnknown, reasonUnknown, "it is not known whether the target is as the write left it")
	}
}

func (s *subject) putDecayCondition(set condition.Set) {
	kind := v1alpha1.ConditionAlertDecayDetected
	switch s.next.Status.AlertDecay {
	case v1alpha1.DecayActive:
		set.True(kind, "DecayActive", "each alert that fires is one of before the write")
	case v1alpha1.DecayResolved:
		set.False(kind, "DecayResolved", "the alerts of before the write have resolved")
	case v1alpha1.DecayTimedOut:
		set.True(kind, "DecayTimeout", "an alert of before the write fired until the deadline")
	case "":
		set.False(kind, "NoDecay", "no alert of before the write was seen to fire after it")
	}
}
