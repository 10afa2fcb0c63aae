// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// Question is what is asked about one policy.
type Question struct {
	Policy *v1alpha1.RemediationPolicy
	// InitiatedBy is [planner.InitiatedByItself], or the user who asks for a plan,
	// with that user's groups.
	InitiatedBy       string
	InitiatedByGroups []string
	// Request of that user; nil without one.
	Request *v1alpha1.RemediationRequest
	Now     time.Time
	// Skew is how far the own clock is ahead of the API server's.
	Skew time.Duration
	// Zones finds time zones; nil is time.LoadLocation.
	Zones window.ZoneLoader
	// ResyncPeriod is that of the command line; nil when none was given.
	ResyncPeriod *time.Duration
	// Plans that were read live, and that the World may not have yet.
	Plans []v1alpha1.RemediationPlan
}

// Gathered is everything known about one policy.
type Gathered struct {
	// Input of the planner.
	Input planner.Input
	// Environment of the policy; nil when there is none of its name.
	Environment *v1alpha1.Environment
	// InEnvironment counts the guarded objects that the policy could select.
	InEnvironment int
	// Problems are what is wrong with the policy although the schema let it
	// through; its plans would be wrong, so none may be made.
	Problems field.ErrorList
	// LastPlan is the newest plan of the policy, as namespace/name; empty without one.
	LastPlan string

	world *World
}

// Gather reads everything that a plan of the policy depends on. A policy with
// Problems gets no further than that.
func Gather(ctx context.Context, src Source, q Question) (*Gathered, error) {
	world, err := src.World(ctx, q.Now)
	if err != nil {
		return nil, fmt.Errorf("planning for policy %s: %w", q.Policy.Name, err)
	}
	g := &gatherer{Question: q, src: src, world: world, out: &Gathered{world: world}}
	g.compile()
	g.plans()
	if len(g.out.Problems) > 0 {
		return g.out, nil
	}
	if err := g.objects(ctx); err != nil {
		return nil, fmt.Errorf("planning for policy %s: %w", q.Policy.Name, err)
	}
	return g.out, nil
}

// gatherer is one Gather under way.
type gatherer struct {
	Question
	src      Source
	world    *World
	selector labels.Selector
	history  records
	writes   map[repaired][]effect.Repair
	// byName are all plans, by namespace/name.
	byName map[string]*v1alpha1.RemediationPlan
	// measured are the objects whose last repair is being measured; nil before they were asked for.
	measured map[object]measurement
	out      *Gathered
}

// compile reads the policy itself: what the schema cannot check is checked here.
func (g *gatherer) compile() {
	spec := &g.Policy.Spec
	in := &g.out.Input
	in.Policy = planner.Policy{Spec: *spec, PlanPolicy: v1alpha1.PlanPolicy{
		Name: g.Policy.Name, UID: string(g.Policy.UID), Generation: g.Policy.Generation, Digest: planner.Digest(spec),
	}}
	in.InitiatedBy, in.InitiatedByGroups, in.Now = g.InitiatedBy, g.InitiatedByGroups, g.Now
	in.Request = g.request()
	if g.out.Environment = g.world.Environment(spec.EnvironmentName); g.out.Environment == nil {
		g.problem(field.NotFound(field.NewPath("spec", "environmentName"), spec.EnvironmentName))
	} else {
		in.Dependencies = g.out.Environment.Spec.Dependencies
	}
	schedule, errs := planner.Schedule(&spec.Schedule, g.Zones)
	g.out.Problems = append(g.out.Problems, errs...)
	state := schedule.Decide(g.Now, g.Skew)
	in.Opening = planner.Opening{Open: state.Open, Why: state.Why}
	if !state.Open {
		in.Opening.Next = state.Next
	}
	if spec.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
		if err != nil {
			g.problem(field.Invalid(field.NewPath("spec", "selector"), metav1.FormatLabelSelector(spec.Selector), err.Error()))
		}
		g.selector = selector
	}
}

func (g *gatherer) problem(err *field.Error) { g.out.Problems = append(g.out.Problems, err) }

// plans finds what is under way, and what was before.
func (g *gatherer) plans() {
	g.byName = make(map[string]*v1alpha1.RemediationPlan, len(g.world.Plans)+len(g.Plans))
	for _, list := range [][]v1alpha1.RemediationPlan{g.world.Plans, g.Plans} { // what was read live is newer
		for i := range list {
			g.byName[list[i].Namespace+"/"+list[i].Name] = &list[i]
		}
	}
	in := &g.out.Input
	var own []v1alpha1.RemediationPlan
	var newest *v1alpha1.RemediationPlan
	for _, p := range g.byName {
		if p.Spec.Plan.Policy.UID != in.Policy.UID {
			continue
		}
		own = append(own, *p)
		in.PlansMade = append(in.PlansMade, p.CreationTimestamp.Time)
		if !protocol.Final(p.Status.Phase) {
			in.UnderWay = append(in.UnderWay, *p)
		}
		if newest == nil || laterPlan(p, newest) {
			newest = p
		}
	}
	sortPlans(in.UnderWay)
	g.history, g.writes = history(&in.Policy, own), g.writesOf(&in.Policy, g.byName)
	if newest != nil {
		g.out.LastPlan = newest.Namespace + "/" + newest.Name
	}
}

// objects goes through all Baselines of the policy's Environment.
func (g *gatherer) objects(ctx context.Context) error {
	for i := range g.world.Baselines {
		b := &g.world.Baselines[i]
		if !b.Guarded() {
			continue
		}
		if !g.inEnvironment(b.Namespace) {
			g.stands(b, planner.StandingOtherEnvironment)
			continue
		}
		g.out.InEnvironment++
		s := g.look(ctx, b)
		if !g.selects(s) {
			g.stands(b, planner.StandingNotSelected)
			continue
		}
		g.out.Input.Scope.Selected++
		if !hasDrifted(b) {
			g.stands(b, planner.StandingNotDrifted)
			g.count(s)
			continue
		}
		d, err := g.drift(ctx, s)
		if err != nil {
			return err
		}
		g.stands(b, planner.StandingDrifted)
		g.out.Input.Drifts = append(g.out.Input.Drifts, d)
	}
	return nil
}

// putBack says that a plan under way has an object as its target: such an object may be ill
// because of its drift, as one that still drifts.
func (g *gatherer) putBack(b *v1alpha1.Baseline) bool {
	for i := range g.out.Input.UnderWay {
		plan := &g.out.Input.UnderWay[i]
		holds := func(t v1alpha1.PlanTarget) bool { return t.BaselineName == b.Name }
		if plan.Namespace == b.Namespace && slices.ContainsFunc(plan.Spec.Plan.Targets, holds) {
			return true
		}
	}
	return false
}

func (g *gatherer) inEnvironment(namespace string) bool {
	owner := g.world.Of(namespace)
	return owner != nil && owner.Name == g.Policy.Spec.EnvironmentName
}

func hasDrifted(b *v1alpha1.Baseline) bool {
	return b.Status.State == v1alpha1.StateDrifted || b.Status.State == v1alpha1.StateMissing
}
