// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	scoring "github.com/plumbline-dev/plumbline/pkg/remediate/severity"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
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
	CheckEffect        CheckName = "Effect"
	CheckExceptions    CheckName = "Exceptions"
	CheckPresence      CheckName = "Presence"
	CheckEscalation    CheckName = "Escalation"
	CheckApplicability CheckName = "Applicability"
	CheckPermission    CheckName = "Permission"
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
	{CheckAttempts, attempts}, {CheckEffect, ineffective}, {CheckExceptions, exceptions}, {CheckPresence, presence}, {CheckEscalation, notifiedFirst},
	{CheckApplicability, applicable}, {CheckPermission, permission},
}

// ObstacleTo returns the first reason to leave a drift alone.
func ObstacleTo(in *Input, d *Drift) Obstacle {
	if in.Request != nil {
		if o := requested(in, d); o.Reason != "" {
			return o
		}
	}
	for _, c := range checks {
		if o := c.ask(in, d); o.Reason != "" {
			return o
		}
	}
	return Obstacle{}
}

// Checks asks every question about a drift, also those after the first obstacle, but for
// permissions that the API server was not asked for, and an escalation that the policy does
// not have.
func Checks(in *Input, d *Drift) []Check {
	out := make([]Check, 0, len(checks))
	for _, c := range checks {
		if c.name == CheckPermission && !in.AccessAsked || c.name == CheckEscalation && in.Policy.Spec.Escalation == nil {
			continue
		}
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
	case d.Forbidden:
		return obstacle(ReasonForbiddenKind, "Plumbline never writes a %s", d.Target.Kind)
	case d.State != v1alpha1.StateDrifted && d.State != v1alpha1.StateMissing:
		return obstacle(ReasonUnknown, "its state is %s", d.State)
	case d.Terminating: // after the state, since an object that is not the one that drifted tells of no deletion
		return obstacle(ReasonTerminating, "it, or its namespace, is being deleted")
	case d.Authorized == nil:
		return obstacle(ReasonNothingAuthorized, "it has no authorized state; accept it, or delete it")
	}
	return Obstacle{}
}

func brakes(_ *Input, d *Drift) Obstacle {
	switch {
	case d.AcceptedBy != "":
		return obstacle(ReasonAccepted, "%s has accepted the observed state, and the assessor has not answered yet", d.AcceptedBy)
	case d.Contended:
		return obstacle(ReasonContended, "writers keep undoing each other's changes")
	case d.Frozen != "":
		o := obstacle(ReasonMassDrift, "%s sees a mass drift: one cause is assumed, and a person has to look", d.Frozen)
		o.Until = d.FrozenUntil
		return o
	case d.Rollout != "":
		return obstacle(ReasonRolloutUnderWay, "%s", RolloutUnderWay(d.Rollout))
	}
	return Obstacle{}
}

// RolloutUnderWay says why nothing is put back while a run measures, or moves, what would be written.
// Planner and executor say the same.
func RolloutUnderWay(run string) string {
	return run + " is under way: a repair would change its measurements, and waits for its end"
}

func underWay(in *Input, d *Drift) Obstacle {
	if d.Claim != "" {
		return obstacle(ReasonUnderWay, "plan %s holds it", d.Claim)
	}
	if plan := PlanOf(in, d); plan != "" {
		return obstacle(ReasonUnderWay, "plan %s has it", plan)
	}
	return measured(in, d)
}

// measured says why a target whose last repair is being measured is in no new plan: a second repair would change
// what the assessment measures.
func measured(in *Input, d *Drift) Obstacle {
	if d.MeasuredBy == "" || !d.MeasuredUntil.After(in.Now) {
		return Obstacle{}
	}
	o := obstacle(ReasonMeasured, "assessment %s measures its last repair, until %s at the latest", d.MeasuredBy, d.MeasuredUntil.UTC().Format(time.RFC3339))
	o.Until = d.MeasuredUntil
	return o
}

// PlanOf returns the name of the policy's plan under way that has the drift as a target, or "".
func PlanOf(in *Input, d *Drift) string {
	for i := range in.UnderWay {
		plan := &in.UnderWay[i]
		holds := func(t v1alpha1.PlanTarget) bool { return t.BaselineName == d.Baseline }
		if plan.Namespace == d.Namespace && slices.ContainsFunc(plan.Spec.Plan.Targets, holds) {
			return plan.Name
		}
	}
	return ""
}

func severity(in *Input, d *Drift) Obstacle {
	if in.Request != nil {
		return Obstacle{}
	}
	if scoring.CompareLevels(d.Severity.Level, in.Policy.Spec.MinimumSeverity) < 0 {
		return obstacle(ReasonBelowSeverity, "severity %s is below %s", d.Severity.Level, in.Policy.Spec.MinimumSeverity)
	}
	if in.Policy.Spec.Trigger == v1alpha1.TriggerSeverityEscalation && !scoring.Escalated(&d.Severity) {
		return obstacle(ReasonNotEscalated, "severity %s, with a score in band %s, is no more than at first", d.Severity.Level, scoring.Band(d.Severity.Score))
	}
	return Obstacle{}
}

func age(in *Input, d *Drift) Obstacle {
	if in.Request != nil {
		return Obstacle{}
	}
	spec := &in.Policy.Spec
	if d.FirstSeen.IsZero() {
		return unknownAge(spec)
	}
	old := max(0, in.Now.Sub(d.FirstSeen))
	if spec.MinimumDriftAge != nil && old < spec.MinimumDriftAge.Duration {
		o := obstacle(ReasonTooYoung, "it is %s old, and acted upon at %s", old.Truncate(time.Second), spec.MinimumDriftAge.Duration)
		o.Until = d.FirstSeen.Add(spec.MinimumDriftAge.Duration)
		return o
	}
	if spec.MaximumDriftAge == nil {
		return Obstacle{}
	}
	switch begins := beginning(in, d); {
	case old > spec.MaximumDriftAge.Duration:
		return obstacle(ReasonTooOld, "it is older than %s: a person has to decide", spec.MaximumDriftAge.Duration)
	case spec.Action != v1alpha1.ActionNotifyOnly && spec.Trigger != v1alpha1.TriggerManual && begins.Sub(d.FirstSeen) > spec.MaximumDriftAge.Duration:
		return obstacle(ReasonTooOld, "it will be older than %s when the schedule opens at %s: a person has to decide",
			spec.MaximumDriftAge.Duration, begins.UTC().Format(time.RFC3339))
	}
	return Obstacle{}
}

// unknownAge returns the obstacle of a drift without a time at which it was first seen.
func unknownAge(spec *v1alpha1.RemediationPolicySpec) Obstacle {
	switch {
	case spec.MinimumDriftAge != nil && spec.MinimumDriftAge.Duration > 0:
		return obstacle(ReasonTooYoung, "its age is unknown, and it is acted upon at %s", spec.MinimumDriftAge.Duration)
	case spec.MaximumDriftAge != nil:
		return obstacle(ReasonTooOld, "its age is unknown, and may be more than %s: a person has to decide", spec.MaximumDriftAge.Duration)
	default:
		return Obstacle{}
	}
}

func attempts(in *Input, d *Drift) Obstacle {
	if d.DoneBy != "" {
		return obstacle(ReasonDone, "plan %s has remediated it; the rest is not for this policy", d.DoneBy)
	}
	if o := undecided(d); o.Reason != "" && in.Request == nil {
		return o
	}
	if d.RetryAt.After(in.Now) {
		o := obstacle(ReasonBackoff, "the last plan for it ended without success: the next one is made at %s", d.RetryAt.UTC().Format(time.RFC3339))
		o.Until = d.RetryAt
		return o
	}
	return Obstacle{}
}

// undecided says why a person has to decide about a drift, or already has.
func undecided(d *Drift) Obstacle {
	switch {
	case d.ChosenBy != "":
		return obstacle(ReasonDone, "%s asked for this state", d.ChosenBy)
	case d.CanceledBy != "":
		return obstacle(ReasonCanceled, "%s canceled a plan of this policy for this drift", d.CanceledBy)
	case d.Attempts >= MaxAttempts:
		o := obstacle(ReasonAttempts, "%d plans did not remediate it: a person has to decide", d.Attempts)
		if d.LastFailure != "" {
			o.Message += "; the last one: " + d.LastFailure
		}
		return o
	}
	return Obstacle{}
}

func exceptions(in *Input, d *Drift) Obstacle {
	allowed := in.Policy.Spec.Exceptions
	switch {
	case !d.Attributed && allowed.Unattributed != v1alpha1.Allowed:
		return obstacle(ReasonUnattributed, "its writer is not known for certain; exceptions.unattributed would allow it")
	case d.GitOps != "" && allowed.GitOps != v1alpha1.Allowed:
		return obstacle(ReasonGitOps, "%s remediates it itself; exceptions.gitOps would allow it", d.GitOps)
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
	if in.Policy.Spec.Strategy == v1alpha1.StrategyBlueGreen && !isDeployment(&d.Target) {
		return obstacle(ReasonNotApplicable, "only a Deployment gets a standby, which the strategy BlueGreen needs")
	}
	switch in.Policy.Spec.Action {
	case v1alpha1.ActionNotifyOnly, v1alpha1.ActionReconcile:
		return Obstacle{}
	case v1alpha1.ActionRollback:
		return rollback(d)
	case v1alpha1.ActionScale:
		return scale(d)
	case v1alpha1.ActionRestart:
		if gone {
			return obstacle(ReasonNotApplicable, "an object that is gone cannot be restarted")
		}
		return Obstacle{}
	case v1alpha1.ActionQuarantine:
		return quarantine(d)
	}
	return obstacle(ReasonNotApplicable, "unknown action %q", in.Policy.Spec.Action)
}

func isDeployment(t *v1alpha1.BaselineTarget) bool {
	return canon.ParseGVK(t.APIVersion, t.Kind).Group == "apps" && t.Kind == "Deployment"
}

// servedKinds have pods that proxies send requests to.
var servedKinds = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}

// quarantine says why a quarantine does nothing about a drift.
func quarantine(d *Drift) Obstacle {
	switch {
	case d.State == v1alpha1.StateMissing:
		return obstacle(ReasonNotApplicable, "an object that is gone gets no requests")
	case canon.ParseGVK(d.Target.APIVersion, d.Target.Kind).Group != "apps" || !slices.Contains(servedKinds, d.Target.Kind):
		return obstacle(ReasonNotApplicable, "a %s has no pods that proxies send requests to", d.Target.Kind)
	case d.QuarantinedBy != "":
		return obstacle(ReasonQuarantined, "it is in quarantine, by %s", d.QuarantinedBy)
	case d.LiftedBy != "":
		return obstacle(ReasonDone, "%s has lifted the quarantine of this drift", d.LiftedBy)
	}
	return Obstacle{}
}

// scale says why the authorized number of replicas is not put back.
func scale(d *Drift) Obstacle {
	switch {
	case d.BodyLost:
		return obstacle(ReasonNotApplicable, "the number of replicas that was authorized is not known: revision %s is gone or damaged", d.Authorized.Revision)
	case d.State == v1alpha1.StateMissing, d.Scaled == nil:
		return obstacle(ReasonNotApplicable, "its number of replicas did not change")
	}
	return Obstacle{}
}

// rollback says why a rollback does nothing about a drift.
func rollback(d *Drift) Obstacle {
	switch to := cmp.Or(d.To, d.Ready); {
	case to == nil:
		return obstacle(ReasonNeverReady, "no authorized state of it is known to have been ready")
	case to.DesiredHash == d.DriftedHash && d.To != nil:
		return obstacle(ReasonNotApplicable, "it is as revision %s says", to.Revision)
	case to.DesiredHash == d.DriftedHash:
		return obstacle(ReasonNotApplicable, "it is as it was when it was last ready")
	}
	return Obstacle{}
}

// permission says what may not be written. A policy that only notifies writes nothing.
func permission(in *Input, d *Drift) Obstacle {
	if d.Denied == "" || in.Policy.Spec.Action == v1alpha1.ActionNotifyOnly {
		return Obstacle{}
	}
	return obstacle(ReasonNotAllowed, "%s", d.Denied)
}
