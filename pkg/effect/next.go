// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"time"
)

// probe is how often a missing answer is asked for again.
const probe = 30 * time.Second

// healthyEnough and metricsEnough are the least scores with which an alert that still fires may be
// one that decays.
const (
	healthyEnough = restarted
	metricsEnough = 5_000
)

// Assessment is what is stored of an assessment that has not ended.
type Assessment struct {
	Windows
	// Executed says that the step wrote, or may have written.
	Executed bool
	// WrittenTime is when, by the API server.
	WrittenTime time.Time
	// Written is the answer to the write.
	Written Body
	Components
	// Decaying says that the alerts that fire are those of before the write.
	Decaying bool
	// AskedTime is when the components were asked last; zero before the first time.
	AskedTime time.Time
}

// Facts are what was learned in this look.
type Facts struct {
	// Now is the API server's time; TimeUnknown says that the clocks are not compared.
	Now         time.Time
	TimeUnknown bool
	Live        Live
}

// Decision is what follows a look. A reason completes the assessment. Without a reason the caller
// assesses what Ask names, and looks again at Until.
type Decision struct {
	Phase     Phase
	Integrity Integrity
	// Reason completes the assessment; empty while it goes on.
	Reason Reason
	// Ask names the components to assess now.
	Ask []Name
	// Until is the time of the next look, if no event comes before. It is zero while the clocks are
	// not compared.
	Until time.Time
}

// Next decides about an assessment that has not ended. It remembers nothing, so any assessor
// comes to the same end, whatever died before.
func Next(a *Assessment, f Facts) Decision {
	if !a.Executed {
		return Decision{Phase: Completed, Integrity: IntegrityUnknown, Reason: NoExecution}
	}
	integrity := Compare(a.Written, f.Live)
	if integrity == SpecDrifted {
		return Decision{Phase: Completed, Integrity: integrity, Reason: SpecDrift}
	}
	if f.TimeUnknown {
		return Decision{Phase: Pending, Integrity: integrity}
	}
	s := a.Schedule(a.WrittenTime)
	phase, expired := s.PhaseAt(f.Now)
	switch {
	case expired:
		return Decision{Phase: Completed, Integrity: integrity, Reason: a.reasonAtDeadline()}
	case phase == WaitingForPropagation:
		return Decision{Phase: phase, Integrity: integrity, Until: s.Propagated}
	case phase == Stabilizing:
		return Decision{Phase: phase, Integrity: integrity, Until: s.Stabilized}
	}
	return a.assess(s, f.Now, integrity)
}

// assess asks for what is missing, and completes the assessment when nothing is. An unknown hash
// completes nothing: the target may have been changed.
func (a *Assessment) assess(s Schedule, now time.Time, integrity Integrity) Decision {
	d := Decision{Phase: Assessing, Integrity: integrity}
	missing := a.open()
	if len(missing) == 0 && integrity == SpecUnchanged {
		d.Phase, d.Reason = Completed, Full
		return d
	}
	if next := a.AskedTime.Add(probe); !a.AskedTime.IsZero() && now.Before(next) && !a.alertsAreDue(s, now) {
		d.Until = earliest(next, s.Deadline)
		return d
	}
	for _, name := range missing {
		if name != Alerts || !now.Before(s.Alerts) {
			d.Ask = append(d.Ask, name)
		}
	}
	d.Until = earliest(now.Add(probe), s.Deadline)
	if now.Before(s.Alerts) {
		d.Until = earliest(d.Until, s.Alerts)
	}
	return d
}

// alertsAreDue says that alerts have never been asked for, and may be now.
func (a *Assessment) alertsAreDue(s Schedule, now time.Time) bool {
	return a.Alerts.State == NotAssessed && !now.Before(s.Alerts) && a.AskedTime.Before(s.Alerts)
}

// open are the components to ask for: those without an answer, and all that have one while an
// alert decays.
func (a *Assessment) open() []Name {
	missing := a.Missing()
	if !a.decays() {
		return missing
	}
	var open []Name
	for _, name := range names {
		if a.Of(name).State != NotConfigured {
			open = append(open, name)
		}
	}
	return open
}

// decays says that an alert which still fires may be one of which the cause has gone.
func (a *Assessment) decays() bool {
	if a.Alerts.State != Assessed || !a.Alerts.Bad || !a.Decaying {
		return false
	}
	well := func(c Component, least int32) bool {
		return c.State != Assessed || c.Score == nil || !c.Bad && *c.Score >= least
	}
	return a.Health.State == Assessed && well(a.Health, healthyEnough) && well(a.Metrics, metricsEnough)
}

// reasonAtDeadline names what is missing when the time is over.
func (a *Assessment) reasonAtDeadline() Reason {
	missing := a.Missing()
	switch {
	case a.decays():
		return AlertDecayTimeout
	case len(missing) == 0:
		return Full
	case a.assessed() == 0:
		return Expired
	case len(missing) == 1 && missing[0] == Metrics:
		return MetricsTimedOut
	}
	return Partial
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
