// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
)

// Names of gates that are neither the planner's nor a ledger's.
const (
	gateMode        = "Mode"
	gateTrigger     = "Trigger"
	gateAction      = "Action"
	gateWindow      = "Window"
	gateHealth      = "Health"
	gateBlastRadius = "BlastRadius"
)

func open(name, value, message string) Gate {
	return Gate{Name: name, State: Open, Value: value, Message: message}
}

func mode(in *planner.Input) Gate {
	value := string(in.Policy.Spec.Mode)
	switch in.Policy.Spec.Mode {
	case v1alpha1.PolicyModeActive:
		return open(gateMode, value, actsAs(&in.Policy.Spec))
	case v1alpha1.PolicyModeHalted:
		return Gate{Name: gateMode, State: Closed, Value: value, Limit: "Active", Needs: NeedsChange, Message: "the policy is halted"}
	case v1alpha1.PolicyModeObserveOnly:
		return Gate{Name: gateMode, State: Closed, Value: value, Limit: "Active", Needs: NeedsChange, Message: "the policy only observes; activate it"}
	}
	return Gate{Name: gateMode, State: Closed, Value: value, Limit: "Active", Needs: NeedsChange, Message: "the mode is unknown"}
}

// actsAs says with whose rights an active policy acts.
func actsAs(policy *v1alpha1.RemediationPolicySpec) string {
	if user := planner.PrincipalOf(policy).User; user != "" {
		return "the policy acts with the permissions of " + user
	}
	return "the policy acts"
}

func trigger(in *planner.Input) Gate {
	value := string(in.Policy.Spec.Trigger)
	if in.Policy.Spec.Trigger != v1alpha1.TriggerManual {
		return open(gateTrigger, value, "plans begin by themselves")
	}
	return Gate{Name: gateTrigger, State: Closed, Value: value, Needs: NeedsChange, Message: `a plan is made, and waits for a person to run "kubectl plumbline plan execute"`}
}

func action(in *planner.Input) Gate {
	value := string(in.Policy.Spec.Action)
	if in.Policy.Spec.Action != v1alpha1.ActionNotifyOnly {
		return open(gateAction, value, "")
	}
	return Gate{Name: gateAction, State: Closed, Value: value, Needs: NeedsChange, Message: "the policy notifies people, and does not write"}
}

// planned are the planner's questions about the drift, with the window behind
// those that nobody may pass.
func planned(in *planner.Input, d *planner.Drift) []Gate {
	var gates []Gate
	for _, c := range planner.Checks(in, d) {
		if c.Name == planner.CheckSeverity {
			gates = append(gates, window(in, d))
		}
		gates = append(gates, gateOf(in, d, c))
	}
	return gates
}

// gateOf is one of the planner's questions as a gate.
func gateOf(in *planner.Input, d *planner.Drift, c planner.Check) Gate {
	g := Gate{Name: string(c.Name), State: Open, Message: c.Message, Until: c.Until}
	g.Value, g.Limit = valueOf(in, d, c.Name)
	if c.Reason == "" {
		if c.Name == planner.CheckPresence && d.State == v1alpha1.StateMissing {
			g.Message = "it is made again with its owners that still live, " + repair.NotRestored
		}
		return g
	}
	g.State, g.Needs = Closed, needs(c.Reason)
	if !g.Until.IsZero() {
		g.Needs = NeedsTime
	}
	if c.Reason == planner.ReasonUnknown {
		g.State, g.Needs = Unknown, NeedsNothing
	}
	return g
}

// needs says what ends an obstacle that no time ends.
func needs(r planner.Reason) Needs {
	switch r {
	case planner.ReasonUnderWay, planner.ReasonUnhealthy, planner.ReasonBlastRadius, planner.ReasonPlanRate, planner.ReasonContended,
		planner.ReasonAccepted, planner.ReasonRolloutUnderWay, planner.ReasonMeasured:
		return NeedsEvent
	case planner.ReasonUnmanaged, planner.ReasonSuspended, planner.ReasonTerminating, planner.ReasonForbiddenKind,
		planner.ReasonUnknown, planner.ReasonNothingAuthorized, planner.ReasonMassDrift, planner.ReasonBelowSeverity,
		planner.ReasonNotEscalated, planner.ReasonNotifyStage, planner.ReasonTooYoung, planner.ReasonTooOld, planner.ReasonAttempts, planner.ReasonChain, planner.ReasonBackoff, planner.ReasonDone,
		planner.ReasonCanceled, planner.ReasonNotAllowed, planner.ReasonUnattributed, planner.ReasonGitOps, planner.ReasonActiveWriter,
		planner.ReasonRecreation, planner.ReasonNotApplicable, planner.ReasonQuarantined, planner.ReasonNeverReady, planner.ReasonNotGuarded,
		planner.ReasonNotSelected, planner.ReasonNotDrifted, planner.ReasonChanged, planner.ReasonNoRevision:
		return NeedsChange
	}
	return NeedsChange
}

// valueOf says what is compared with what.
func valueOf(in *planner.Input, d *planner.Drift, name planner.CheckName) (value, limit string) {
	spec := &in.Policy.Spec
	switch name {
	case planner.CheckSeverity:
		value = fmt.Sprintf("%s (score %d: %s)", d.Severity.Level, d.Severity.Score, factors(&d.Severity))
		return value, severities(in, d)
	case planner.CheckAge:
		return ageOf(in, d), ages(spec)
	case planner.CheckAttempts:
		return fmt.Sprint(d.Attempts), fmt.Sprintf("less than %d", planner.MaxAttempts)
	case planner.CheckEffect:
		if n := len(d.Chain.Repairs); n > 0 {
			return "a chain of " + plural.Of(n, "repair"), ""
		}
		return "no chain of repairs", ""
	case planner.CheckPresence, planner.CheckGuard:
		return string(d.State), ""
	case planner.CheckEscalation:
		return "stage " + string(planner.StageOf(in, d)), ""
	case planner.CheckApplicability:
		return string(spec.Action), ""
	case planner.CheckBrakes, planner.CheckUnderWay, planner.CheckExceptions, planner.CheckPermission:
	}
	return "", ""
}

// ageOf says how old a drift is. A Baseline may lack the time at which the drift was first seen.
func ageOf(in *planner.Input, d *planner.Drift) string {
	if d.FirstSeen.IsZero() {
		return "unknown"
	}
	return max(0, in.Now.Sub(d.FirstSeen)).Truncate(time.Second).String()
}

// severities says what the severity must be.
func severities(in *planner.Input, d *planner.Drift) string {
	limit := "at least " + string(in.Policy.Spec.MinimumSeverity)
	if in.Policy.Spec.Trigger != v1alpha1.TriggerSeverityEscalation {
		return limit
	}
	limit += ", above the first level " + string(d.Severity.First)
	if first := d.Severity.FirstScore; first != nil {
		limit += fmt.Sprintf(" or a score above the band of the first score %d", *first)
	}
	return limit
}

func factors(s *v1alpha1.Severity) string {
	parts := make([]string, 0, len(s.Factors)+1)
	for _, f := range s.Factors {
		parts = append(parts, fmt.Sprintf("%s %d × %d %%", f.Name, f.Score, f.Weight))
	}
	if s.Floor != "" {
		parts = append(parts, "at least "+string(s.Floor)+" for the changed fields")
	}
	return strings.Join(parts, ", ")
}

func ages(spec *v1alpha1.RemediationPolicySpec) string {
	var parts []string
	if spec.MinimumDriftAge != nil {
		parts = append(parts, "at least "+spec.MinimumDriftAge.Duration.String())
	}
	if spec.MaximumDriftAge != nil {
		parts = append(parts, "at most "+spec.MaximumDriftAge.Duration.String())
	}
	return strings.Join(parts, ", ")
}

func window(in *planner.Input, d *planner.Drift) Gate {
	switch {
	case in.Opening.Open:
		return open(gateWindow, "open", in.Opening.Why)
	case in.Policy.Spec.Schedule.Urgent == v1alpha1.Allowed && d.Severity.Urgency == v1alpha1.UrgencyImmediate:
		return open(gateWindow, "passed", "it is urgent, and schedule.urgent lets it pass")
	case in.Opening.Next.IsZero():
		return Gate{Name: gateWindow, State: Closed, Value: "closed", Needs: NeedsChange, Message: in.Opening.Why}
	}
	return Gate{Name: gateWindow, State: Closed, Value: "closed", Needs: NeedsTime, Until: in.Opening.Next, Message: in.Opening.Why}
}

// operation are the limits of one operation. Whether there is room depends on all
// other drift, so the planner is asked what it would do.
func operation(in *planner.Input, d *planner.Drift) []Gate {
	known := in.Scope.Healthy + in.Scope.Unhealthy
	health := Gate{
		Name: gateHealth, State: Open, Value: fmt.Sprintf("%d of %d healthy", in.Scope.Healthy, known),
		Limit: fmt.Sprintf("at least %d %%", max(75, in.Policy.Spec.Safety.MinHealthyPercent)),
	}
	if o := planner.Health(&in.Policy.Spec.Safety, in.Scope.Healthy, in.Scope.Unhealthy); o.Reason != "" {
		health.State, health.Needs, health.Message = Closed, NeedsEvent, o.Message
	}
	return []Gate{health, blastRadius(in, d)}
}

// blastRadius compares the places that plans of the policy take with those of one operation. A drift whose
// plan has a place already was counted when that plan was made.
func blastRadius(in *planner.Input, d *planner.Drift) Gate {
	if planner.PlanOf(in, d) != "" {
		return open(gateBlastRadius, "its plan has a place", "")
	}
	allowed := planner.Allowed(&in.Policy.Spec.Safety, in.Scope.Selected)
	g := open(gateBlastRadius, fmt.Sprintf("%d of %s taken", allowed-planner.Room(in), plural.Of(allowed, "target")), "")
	if o := planner.BlastRadius(in); o.Reason != "" {
		g.State, g.Needs, g.Message = Closed, NeedsEvent, o.Message
		return g
	}
	for _, left := range planner.Make(in).LeftOut {
		if left.Reason == planner.ReasonBlastRadius && left.Drift.Namespace == d.Namespace && left.Drift.Baseline == d.Baseline {
			g.State, g.Needs, g.Message = Closed, NeedsEvent, left.Message
		}
	}
	return g
}
