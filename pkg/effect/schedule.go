// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Windows say how long a write is measured. None of them is negative.
type Windows struct {
	// Propagation is how long the write needs to arrive, as through a tool of GitOps; 0 where
	// the write itself is the arrival.
	Propagation time.Duration
	// Stabilization is how long a workload is left alone before it is measured.
	Stabilization time.Duration
	// AlertDelay is how long after the stabilization alerts are asked for: an alert resolves
	// later than its cause.
	AlertDelay time.Duration
	// Validity is how long an answer that is missing is waited for.
	Validity time.Duration
}

// WindowsOf returns the windows of a stored assessment. A window that is left out is no time at all.
func WindowsOf(stored *v1alpha1.AssessmentWindows) Windows {
	of := func(d *metav1.Duration) time.Duration {
		if d == nil {
			return 0
		}
		return max(0, d.Duration)
	}
	return Windows{
		Propagation: of(stored.PropagationDelay), Stabilization: of(stored.Stabilization),
		AlertDelay: of(stored.AlertCheckDelay), Validity: of(stored.Validity),
	}
}

// Schedule has the instants of an assessment.
type Schedule struct {
	// Propagated ends WaitingForPropagation, Stabilized ends Stabilizing, and from Alerts on
	// alerts are asked for.
	Propagated, Stabilized, Alerts time.Time
	// Deadline is when the assessment expires.
	Deadline time.Time
	// Extended says that the validity was shorter than the wait for the alerts, so the deadline
	// is later than the validity alone says.
	Extended bool
}

// Schedule returns the instants of the assessment of a write.
func (w Windows) Schedule(written time.Time) Schedule {
	s := Schedule{Propagated: written.Add(w.Propagation)}
	s.Stabilized = s.Propagated.Add(w.Stabilization)
	s.Alerts = s.Stabilized.Add(w.AlertDelay)
	switch wait := w.Stabilization + w.AlertDelay; {
	case w.Propagation > 0:
		s.Deadline = s.Alerts.Add(w.Validity)
	case wait >= w.Validity:
		s.Deadline, s.Extended = s.Alerts.Add(w.Validity), true
	default:
		s.Deadline = written.Add(w.Validity)
	}
	return s
}

// Phase says how far an assessment is.
type Phase string

// The phases. An assessment may leave out those whose time has passed while no assessor ran.
const (
	// Pending is an assessment that no assessor has looked at.
	Pending Phase = "Pending"
	// WaitingForPropagation waits until the write has arrived.
	WaitingForPropagation Phase = "WaitingForPropagation"
	// Stabilizing leaves the workload alone, and watches its hash.
	Stabilizing Phase = "Stabilizing"
	// Assessing measures the components.
	Assessing Phase = "Assessing"
	// Completed has a reason, and a verdict.
	Completed Phase = "Completed"
	// Failed is an assessment whose spec cannot be carried out.
	Failed Phase = "Failed"
)

// Ended says that a phase is the last one. An unknown phase is none, so nothing is written over it.
func (p Phase) Ended() bool {
	switch p {
	case "", Pending, WaitingForPropagation, Stabilizing, Assessing:
		return false
	case Completed, Failed:
		return true
	}
	return true
}

// PhaseAt returns the phase of an assessment that has not ended, and whether it has expired.
func (s Schedule) PhaseAt(now time.Time) (phase Phase, expired bool) {
	switch {
	case !now.Before(s.Deadline):
		return Assessing, true
	case now.Before(s.Propagated):
		return WaitingForPropagation, false
	case now.Before(s.Stabilized):
		return Stabilizing, false
	}
	return Assessing, false
}
