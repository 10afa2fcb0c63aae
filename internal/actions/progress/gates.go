// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// pods compares the ready endpoints of the canary with those that the next percentage needs.
func (g *gates) pods() Gate {
	const name = "Pods"
	if g.waits(rollout.WaitDeployment, rollout.WaitCapacity, rollout.WaitFallback) {
		return g.held(name, "the pods have to become ready")
	}
	for i := range g.Release.Status.Observed {
		o := &g.Release.Status.Observed[i]
		if o.Variation != g.run.To.Variation {
			continue
		}
		percent := g.wantedPercent()
		wants := requiredPods(percent, g.run.Capacity)
		value := fmt.Sprintf("%s: %d of %d ready, %s %% needs %d", o.Variation, o.ReadyEndpoints, o.Targets, strconv.FormatFloat(percent, 'f', -1, 64), wants)
		if o.ReadyEndpoints < wants {
			return Gate{name, GateHolds, value, "the pods have to become ready"}
		}
		return Gate{name, GateOK, value, ""}
	}
	return Gate{name, GateUnknown, "the status has no endpoints of " + string(g.run.To.Variation), ""}
}

// wantedPercent returns the percentage of the stage that comes next, or 100 after the last one.
func (g *gates) wantedPercent() float64 {
	next := int(g.in.Stage) // the index of the stage after the one under way
	if next < 0 || next >= len(g.run.Stages) {
		return 100
	}
	percent, err := strconv.ParseFloat(percentOf(g.run.Stages[next].TrafficPercentage), 64)
	if err != nil {
		return 100 // the safe side
	}
	return percent
}

// requiredPods returns how many ready endpoints the canary needs for a percentage: that part of the most
// ready endpoints that the active variation had, rounded up, and at least one. The rule is that of
// pkg/traffic/rollout.
func requiredPods(percent float64, capacity int32) int32 {
	weight := int64(percent*100 + 0.5)
	return max(1, int32((weight*int64(capacity)+basisPoints-1)/basisPoints)) //nolint:gosec // at most the capacity
}

func (g *gates) proxies() Gate {
	name, noun := "Proxies", g.Release.Spec.RouterNoun()
	if !g.Release.Spec.UsesMesh() {
		name = "Routers"
	}
	p := proxiesOf(g.Release)
	switch {
	case g.waits(rollout.WaitAcknowledgment) && p != nil:
		gate := g.held(name, "the "+noun+" have to acknowledge the split")
		gate.Value = fmt.Sprintf("%d of %d have acknowledged sequence %d; the run waits for %s", p.Acknowledged, p.All, p.Sequence, gate.Value)
		return gate
	case g.waits(rollout.WaitAcknowledgment):
		return g.held(name, "the "+noun+" have to acknowledge the split")
	case p == nil:
		return Gate{name, GateUnknown, "the status does not say which " + noun + " have the split", ""}
	case p.Acknowledged < p.All:
		return Gate{name, GateUnknown, fmt.Sprintf("%d of %d have acknowledged sequence %d", p.Acknowledged, p.All, p.Sequence), "the run waits for the other " + noun + ", unless acknowledgment.onTimeout is Proceed"}
	}
	return Gate{name, GateOK, fmt.Sprintf("%d of %d have acknowledged sequence %d", p.Acknowledged, p.All, p.Sequence), ""}
}

func (g *gates) observed() Gate {
	const name = "ObservedShare"
	if g.waits(rollout.WaitTraffic) {
		return g.held(name, "requests have to be seen where they must be")
	}
	for _, v := range variationsOf(g.Release) {
		if v.IsCanary && v.Observed != nil {
			return Gate{name, GateOK, fmt.Sprintf("%s answers %.1f %% of the requests", v.Name, *v.Observed), ""}
		}
	}
	return Gate{name, GateUnknown, "no share was observed", ""}
}

func (g *gates) counts() Gate {
	const name = "Counts"
	switch {
	case g.stage.StopTime != nil:
		return Gate{name, GateHolds, "too few " + g.Release.Spec.RouterNoun() + " tell counts: the clock of the stage stands", "four fifths of the " + g.Release.Spec.RouterNoun() + " have to tell counts"}
	case g.waits(rollout.WaitData):
		return g.held(name, "the canary has to get requests that "+g.Release.Spec.RouterNoun()+" count")
	case g.stage.StartTime == nil:
		return Gate{name, GateUnknown, "the clock of the stage has not begun", ""}
	}
	return Gate{name, GateOK, "the clock of the stage runs", ""}
}

func (g *gates) minimumTime() Gate {
	const name = "MinimumTime"
	done, wanted := measured(g.stage, g.Now), seconds(g.stage.DurationSeconds)
	value := fmt.Sprintf("%s of %s measured", done.Truncate(time.Second), wanted.Duration)
	switch {
	case g.stage.StartTime == nil:
		return Gate{name, GateUnknown, "the clock of the stage has not begun", ""}
	case g.stage.PassTime == nil && done.Duration < wanted.Duration:
		return Gate{name, GateHolds, value, "the time passes"}
	}
	return Gate{name, GateOK, value, ""}
}

// verdict says what the judge holds of the stage under way. A verdict of another stage says nothing.
func (g *gates) verdict() Gate {
	const name = "Verdict"
	threshold := fmt.Sprintf("wants %s %% successful", percentOf(g.stage.HealthThreshold))
	a := analysisOf(g.in)
	switch {
	case g.stage.State == "Failed":
		return Gate{name, GateHolds, "the stage failed: " + g.stage.Message, "ask for Retry, Skip or Rollback"}
	case g.stage.PassTime != nil:
		return Gate{name, GateOK, "the stage passed: " + g.stage.Message, ""}
	case a == nil || a.Verdict == "":
		return Gate{name, GateUnknown, "no verdict yet, " + threshold, ""}
	}
	gate := Gate{name, GateHolds, fmt.Sprintf("%s, %s", a.Verdict, threshold), ""}
	if a.Message != "" {
		gate.Value += ": " + a.Message
	}
	for i := range a.Variations {
		if v := &a.Variations[i]; v.Variation == g.run.To.Variation {
			gate.Value += fmt.Sprintf("; %s has at least %s %% successful in %d requests", v.Variation, v.HealthPercentage, v.Samples)
		}
	}
	gate.State, gate.Next = verdictGate(a.Verdict, g.Release.Spec.Rollout.OnUndecided)
	return gate
}

func verdictGate(v v1alpha1.HealthVerdict, undecided v1alpha1.UndecidedPolicy) (state GateState, next string) {
	switch v {
	case "Pass":
		return GateOK, ""
	case "Fail":
		return GateHolds, "the stage fails"
	case "BothBad":
		return GateHolds, "the active variation has to be well again"
	case "Undecided":
		return GateHolds, fmt.Sprintf("more data decides; at the deadline onUndecided applies: %s", undecided)
	case "NoData":
		return GateHolds, "the canary has to get requests"
	}
	return GateUnknown, ""
}

func (g *gates) approval() Gate {
	const name = "Approval"
	switch {
	case g.stage.RequireApproval != v1alpha1.Enabled:
		return Gate{name, GateOK, "the stage needs no approval", ""}
	case g.stage.ApprovedBy != "":
		return Gate{name, GateOK, "approved by " + g.stage.ApprovedBy, ""}
	}
	next := "ask for Approve"
	if by := rollout.Approver(g.Release); by != "" {
		next = by + " has to ask for Approve"
	}
	return Gate{name, GateHolds, fmt.Sprintf("no person has approved stage %d", g.stage.Number), next}
}

func (g *gates) autoAdvance() Gate {
	const name = "AutoAdvance"
	isLast := int(g.in.Stage) == len(g.run.Stages)
	if g.run.AutoAdvance == v1alpha1.Disabled && !isLast {
		return Gate{name, GateHolds, "autoAdvance of the strategy is Disabled", "ask for Advance when the stage has passed"}
	}
	return Gate{name, GateOK, "the run goes on by itself", ""}
}
