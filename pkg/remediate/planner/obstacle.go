// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// MaxAttempts on one drift, after which a person has to look: what three plans
// could not put back a fourth one cannot.
const MaxAttempts = 3

// Obstacle is why a drift is left out; the zero value is none.
type Obstacle struct {
	Reason  Reason
	Message string
	// Until is when it goes away by time alone; zero when something has to happen.
	Until time.Time
}

func obstacle(r Reason, format string, args ...any) Obstacle {
	return Obstacle{Reason: r, Message: fmt.Sprintf(format, args...)}
}

// CheckName names a question about one drift.
type CheckName string

// The questions, in their order: what nobody may ever pass comes before what the
// policy asks for, and that before what it could be told to do all the same.
const (
	CheckGuard         CheckName = "Guard"
	CheckBrakes        CheckName = "Brakes"
	CheckUnderWay      CheckName = "UnderWay"
	CheckSeverity      CheckName = "Severity"
	CheckAge           CheckName = "Age"
	CheckAttempts      CheckName = "Attempts"
	CheckExceptions    CheckName = "Exceptions"
	CheckPresence      CheckName = "Presence"
	CheckApplicability CheckName = "Applicability"
)

// Check is one question about one drift, and what it found.
type Check struct {
	Name CheckName
	// Obstacle is zero when there is none.
	Obstacle
}

var checks = []struct {
	name CheckName
	ask  func(*Input, *Drift) Obstacle
}{
	{CheckGuard, state}, {CheckBrakes, brakes}, {CheckUnderWay, underWay}, {CheckSeverity, severity}, {CheckAge, age},
	{CheckAttempts, attempts}, {CheckExceptions, exceptions}, {CheckPresence, presence}, {CheckApplicability, applicable},
}

// ObstacleTo returns the first reason to leave a drift alone.
func ObstacleTo(in *Input, d *Drift) Obstacle {
	for _, c := range checks {
		if o := c.ask(in, d); o.Reason != "" {
			return o
		}
	}
	return Obstacle{}
}

// Checks asks every question about a drift, also those after the first obstacle.
func Checks(in *Input, d *Drift) []Check {
	out := make([]Check, 0, len(checks))
	for _, c := range checks {
		out = append(out, Check{c.name, c.ask(in, d)})
	}
	return out
}

func state(_ *Input, d *Drift) Obstacle {
	switch {
	case !d.Managed:
		return obstacle(ReasonUnmanaged, "a guard has managementPolicy Unmanaged")
	case d.Suspended:
		return obstacle(ReasonSuspended, "a guard is suspended")
	case d.Terminating:
		return obstacle(ReasonTerminating, "it, or its namespace, is being deleted")
	case d.Forbidden:
		return obstacle(ReasonForbiddenKind, "Plumbline never writes a %s", d.Target.Kind)
	case d.State != v1alpha1.StateDrifted && d.State != v1alpha1.StateMissing:
		return obstacle(ReasonUnknown, "its state is %s", d.State)
	case d.Authorised == nil:
		return obstacle(ReasonNothingAuthorised, "nothing is authorised; accept it, or delete it")
	}
	return Obstacle{}
}

func brakes(_ *Input, d *Drift) Obstacle {
	switch {
	case d.Contended:
		return obstacle(ReasonContended, "writers keep undoing each other's changes")
	case d.Frozen != "":
		return obstacle(ReasonMassDrift, "%s sees a mass drift: one cause is assumed, and a person has to look", d.Frozen)
	}
	return Obstacle{}
}

func underWay(in *Input, d *Drift) Obstacle {
	if d.Claim != "" {
		return obstacle(ReasonUnderWay, "plan %s holds it", d.Claim)
	}
	for i := range in.UnderWay {
		plan := &in.UnderWay[i]
		holds := func(t v1alpha1.PlanTarget) bool { return t.Baseline == d.Baseline }
		if plan.Namespace == d.Namespace && slices.ContainsFunc(plan.Spec.Plan.Targets, holds) {
			return obstacle(ReasonUnderWay, "plan %s has it", plan.Name)
		}
	}
	return Obstacle{}
}

func severity(in *Input, d *Drift) Obstacle {
	if rank(d.Severity.Level) < rank(in.Policy.Spec.MinimumSeverity) {
		return obstacle(ReasonBelowSeverity, "severity %s is below %s", d.Severity.Level, in.Policy.Spec.MinimumSeverity)
	}
	if in.Policy.Spec.Trigger == v1alpha1.TriggerSeverityEscalation && rank(d.Severity.Level) <= rank(d.Severity.First) {
		return obstacle(ReasonNotEscalated, "severity %s is what it was at first", d.Severity.Level)
	}
	return Obstacle{}
}

// levels from mild to severe.
var levels = []v1alpha1.SeverityLevel{
	v1alpha1.SeverityInfo, v1alpha1.SeverityLow, v1alpha1.SeverityMedium, v1alpha1.SeverityHigh, v1alpha1.SeverityCritical,
}

// rank orders levels; one that nobody knows matters least.
func rank(l v1alpha1.SeverityLevel) int { return slices.Index(levels, l) }

func age(in *Input, d *Drift) Obstacle {
	spec := &in.Policy.Spec
	old := max(0, in.Now.Sub(d.FirstSeen))
	if spec.MinimumDriftAge != nil && old < spec.MinimumDriftAge.Duration {
		o := obstacle(ReasonTooYoung, "it is %s old, and acted upon at %s", old.Truncate(time.Second), spec.MinimumDriftAge.Duration)
		o.Until = d.FirstSeen.Add(spec.MinimumDriftAge.Duration)
		return o
	}
	if spec.MaximumDriftAge != nil && old > spec.MaximumDriftAge.Duration {
		return obstacle(ReasonTooOld, "it is older than %s: a person has to decide", spec.MaximumDriftAge.Duration)
	}
	return Obstacle{}
}

func attempts(_ *Input, d *Drift) Obstacle {
	if d.DoneBy != "" {
		return obstacle(ReasonDone, "plan %s has done it; what is left is not for this policy", d.DoneBy)
	}
	if d.CancelledBy != "" {
		return obstacle(ReasonCancelled, "%s cancelled a plan of this policy for this drift", d.CancelledBy)
	}
	if d.Attempts >= MaxAttempts {
		return obstacle(ReasonAttempts, "%d plans did not put it back: a person has to decide", d.Attempts)
	}
	return Obstacle{}
}

func exceptions(in *Input, d *Drift) Obstacle {
	allowed := in.Policy.Spec.Exceptions
	switch {
	case !d.Attributed && allowed.Unattributed != v1alpha1.Allowed:
		return obstacle(ReasonUnattributed, "who changed it is not known for certain; exceptions.unattributed would allow it")
	case d.GitOps != "" && allowed.GitOps != v1alpha1.Allowed:
		return obstacle(ReasonGitOps, "%s puts it back itself; exceptions.gitOps would allow it", d.GitOps)
	case d.ActiveWriter != "" && allowed.ActiveWriter != v1alpha1.Allowed:
		o := obstacle(ReasonActiveWriter, "%s has just changed it; exceptions.activeWriter would allow it", d.ActiveWriter)
		o.Until = d.ActiveUntil
		return o
	}
	return Obstacle{}
}

func presence(in *Input, d *Drift) Obstacle {
	switch {
	case d.State != v1alpha1.StateMissing:
		return Obstacle{}
	case !d.Recreation.Allowed:
		return obstacle(ReasonRecreation, "it is gone and is not made again: %s", d.Recreation.Reason)
	case in.Policy.Spec.Exceptions.Recreate != v1alpha1.Allowed:
		return obstacle(ReasonRecreation, "it is gone; exceptions.recreate would allow to make it again")
	}
	return Obstacle{}
}

// applicable says whether the action does something about the drift.
func applicable(in *Input, d *Drift) Obstacle {
	gone := d.State == v1alpha1.StateMissing
	switch in.Policy.Spec.Action {
	case v1alpha1.ActionNotifyOnly, v1alpha1.ActionReconcile:
		return Obstacle{}
	case v1alpha1.ActionRollback:
		if d.Ready == nil {
			return obstacle(ReasonNeverReady, "no authorised state of it is known to have been ready")
		}
		if d.Ready.DesiredHash == d.DriftedHash {
			return obstacle(ReasonNotApplicable, "it is as it was when it was last ready")
		}
		return Obstacle{}
	case v1alpha1.ActionScale:
		if gone || d.Scaled == nil {
			return obstacle(ReasonNotApplicable, "its number of replicas did not change")
		}
		return Obstacle{}
	case v1alpha1.ActionRestart:
		if gone {
			return obstacle(ReasonNotApplicable, "what is gone cannot be restarted")
		}
		return Obstacle{}
	case v1alpha1.ActionQuarantine:
		return obstacle(ReasonNotApplicable, "Quarantine needs Plumbline's traffic")
	}
	return obstacle(ReasonNotApplicable, "nobody knows the action %q", in.Policy.Spec.Action)
}
