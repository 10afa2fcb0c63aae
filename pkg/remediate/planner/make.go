// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Plan is a plan to be made.
type Plan struct {
	Namespace, Name string
	v1alpha1.PlannedRemediation
}

// LeftOut is a drift without a plan, and why.
type LeftOut struct {
	Drift *Drift
	Obstacle
}

// Output is what is to be done now.
type Output struct {
	Plans []Plan
	// LeftOut has a reason for every drift without a plan, in the order of drift.
	LeftOut []LeftOut
	// Eligible counts the drifts that nothing but room holds back.
	Eligible int
	// Notify are drifts to tell people about: all eligible ones of a policy that
	// only notifies.
	Notify []*Drift
	// NextLook is when something changes by time alone; zero when nothing does.
	NextLook time.Time
}

// Make decides.
func Make(in *Input) Output {
	var out Output
	var eligible []*Drift
	all := out.considered(in)
	order(all, in.Dependencies)
	for _, d := range all {
		if o := ObstacleTo(in, d); o.Reason != "" {
			out.leaveOut(d, o)
			continue
		}
		eligible = append(eligible, d)
	}
	out.Eligible = len(eligible)
	if in.Policy.Spec.Action == v1alpha1.ActionNotifyOnly {
		out.Notify = eligible
		return out
	}
	for _, group := range out.admit(in, eligible) {
		out.Plans = append(out.Plans, plan(in, group, out.LeftOut))
	}
	return out
}

// considered returns the drifts that a plan may have: all, or those that a person asks for.
func (o *Output) considered(in *Input) []*Drift {
	if in.Request != nil {
		return o.asked(in)
	}
	all := make([]*Drift, len(in.Drifts))
	for i := range in.Drifts {
		all[i] = &in.Drifts[i]
	}
	return all
}

func (o *Output) leaveOut(d *Drift, why Obstacle) {
	o.LeftOut = append(o.LeftOut, LeftOut{d, why})
	if !why.Until.IsZero() && (o.NextLook.IsZero() || why.Until.Before(o.NextLook)) {
		o.NextLook = why.Until
	}
}

// admit takes as many as one operation may have, by plan: one namespace each,
// and what may act now apart from what waits for the schedule.
func (o *Output) admit(in *Input, eligible []*Drift) [][]*Drift {
	room := Room(in)
	health := Health(&in.Policy.Spec.Safety, in.Scope.Healthy, in.Scope.Unhealthy)
	plans, nextPlan := planRate(in)
	var groups [][]*Drift
	at := map[groupKey]int{}
	for _, d := range eligible {
		switch {
		case health.Reason != "":
			o.leaveOut(d, health)
			continue
		case room <= 0:
			o.leaveOut(d, noRoom(in))
			continue
		}
		key := groupKey{d.Namespace, mayActNow(in, d)}
		i, ok := at[key]
		if !ok && len(groups) >= plans {
			o.leaveOut(d, tooManyPlans(in.Now, nextPlan))
			continue
		}
		room--
		if !ok {
			i = len(groups)
			at[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

type groupKey struct {
	namespace string
	now       bool
}

// mayActNow says whether a drift may be put back without waiting for the schedule.
func mayActNow(in *Input, d *Drift) bool {
	return in.Opening.Open || in.Request != nil ||
		in.Policy.Spec.Schedule.Urgent == v1alpha1.Allowed && d.Severity.Urgency == v1alpha1.UrgencyImmediate
}

// beginning returns when a plan for a drift may begin: now, or when the schedule opens.
func beginning(in *Input, d *Drift) time.Time {
	if mayActNow(in, d) || in.Opening.Next.IsZero() {
		return in.Now
	}
	return in.Opening.Next
}

// noRoom says for people that other targets take the places of one operation.
func noRoom(in *Input) Obstacle {
	most := Allowed(&in.Policy.Spec.Safety, in.Scope.Selected)
	return obstacle(ReasonBlastRadius, "one operation has at most %s, and %s taken", plural.Of(most, "target"), plural.Verb(most, "it is", "they are"))
}

// BlastRadius returns the obstacle when plans of the policy take all places of one operation.
func BlastRadius(in *Input) Obstacle {
	if Room(in) > 0 {
		return Obstacle{}
	}
	return noRoom(in)
}

// maxTargets is the most that one operation may ever have.
const maxTargets = 10

// Allowed returns how many targets one operation may have: a share of the objects that the
// policy selects, rounded down, at least one, at most ten. Planner and executor ask the same.
func Allowed(safety *v1alpha1.RemediationSafety, selected int) int {
	percent, most := bounded(safety.MaxTargetPercent, 25), bounded(safety.MaxTargets, maxTargets)
	return min(most, max(1, selected*percent/100))
}

// bounded gives a limit that was not set, or is beyond what may ever be, its
// highest value.
func bounded(n int32, most int) int {
	if n < 1 || int(n) > most {
		return most
	}
	return int(n)
}

// Room is how much of that is left beside what is under way.
func Room(in *Input) int {
	room := Allowed(&in.Policy.Spec.Safety, in.Scope.Selected)
	for i := range in.UnderWay {
		room -= len(in.UnderWay[i].Spec.Plan.Targets)
	}
	return room
}

// Health returns the obstacle when too few of the objects that did not drift are healthy.
// The drifted ones do not count: they may be ill because of the drift. Planner and executor
// ask the same.
func Health(safety *v1alpha1.RemediationSafety, healthy, unhealthy int) Obstacle {
	known := healthy + unhealthy
	least := max(75, int(safety.MinHealthyPercent))
	if known == 0 || healthy*100 >= known*least {
		return Obstacle{}
	}
	return obstacle(ReasonUnhealthy, "%d of the %s that did not drift %s healthy, %d %% must be",
		healthy, plural.Of(known, "object"), plural.Verb(healthy, "is", "are"), least)
}

// maxLeftOut is how many reasons a plan itself carries, and maxLeftOutMessage how
// long the words of each are, in bytes; the schema's bounds.
const (
	maxLeftOut        = 64
	maxLeftOutMessage = 256
)

func leftOut(namespace string, all []LeftOut) (told []v1alpha1.LeftOut, total int32) {
	for _, l := range all {
		if l.Drift.Namespace != namespace {
			continue
		}
		total++
		if len(told) < maxLeftOut {
			told = append(told, v1alpha1.LeftOut{BaselineName: l.Drift.Baseline, Reason: string(l.Reason), Message: diff.TruncateText(l.Message, maxLeftOutMessage)})
		}
	}
	return told, total
}

// batches divides targets by strategy.
func batches(spec *v1alpha1.RemediationPolicySpec, n int) []v1alpha1.PlanBatch {
	sizes := []int{n}
	switch spec.Strategy {
	case v1alpha1.StrategyAllAtOnce:
	case v1alpha1.StrategyStaged:
		if n > 1 {
			sizes = []int{1, n - 1}
		}
	case v1alpha1.StrategyRolling, v1alpha1.StrategyBlueGreen:
		sizes = slices.Repeat([]int{1}, n)
	default: // an unknown one is taken for the most careful
		sizes = slices.Repeat([]int{1}, n)
	}
	var out []v1alpha1.PlanBatch
	next := int32(0)
	for i, size := range sizes {
		batch := v1alpha1.PlanBatch{Order: int32(i), RequiresHealthCheck: v1alpha1.Enabled} //nolint:gosec // at most ten
		for range size {
			batch.Steps = append(batch.Steps, next)
			next++
		}
		if i < len(sizes)-1 {
			batch.DelayAfter = spec.Health.DelayAfter
		}
		out = append(out, batch)
	}
	return out
}
