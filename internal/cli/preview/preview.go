// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/comparison"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Report is what preview answers.
type Report struct {
	Policy   string              `json:"policy"`
	Mode     v1alpha1.PolicyMode `json:"mode"`
	Selected int                 `json:"selected"`
	Drifted  int                 `json:"drifted"`
	Eligible int                 `json:"eligible"`
	// Problems of the policy that the schema does not see; with any there are no plans.
	Problems []string   `json:"problems,omitempty"`
	Waiting  string     `json:"waitingFor,omitempty"`
	Plans    []Plan     `json:"plans"`
	Notify   []string   `json:"notify,omitempty"`
	LeftOut  []LeftOut  `json:"leftOut"`
	NextLook *time.Time `json:"nextLook,omitempty"`
}

// Plan is a plan that would be made.
type Plan struct {
	Namespace    string     `json:"namespace"`
	Name         string     `json:"name"`
	ScheduledFor *time.Time `json:"scheduledFor,omitempty"`
	Steps        []Step     `json:"steps"`
}

// LeftOut is a drift without a plan, and why.
type LeftOut struct {
	Namespace string     `json:"namespace"`
	Object    string     `json:"object"`
	Reason    string     `json:"reason"`
	Message   string     `json:"message"`
	Until     *time.Time `json:"until,omitempty"`
}

func Print(inv *invocation.Invocation, report *Report, output string) error {
	if output == "json" || output == "yaml" {
		return inv.PrintStructured(output, report)
	}
	return inv.Print(describe(inv, report, output == "wide"))
}

// World reads what plans depend on, once for all questions of a command.
type World struct {
	*planning.Live
	once  sync.Once
	world *planning.World
	err   error
}

// NewWorld reads with the rights of the user. Plumbline's own namespace is
// never guarded; what the guards cannot say is not asked.
func NewWorld(c *invocation.Cluster, system string) *World {
	if system == "" {
		system = actions.SystemNamespace
	}
	return &World{Live: &planning.Live{Reader: c, Mapper: c.Mapper, Excluded: specguard.ExcludedNamespaces(system)}}
}

// World implements planning.Source.
func (w *World) World(ctx context.Context, now time.Time) (*planning.World, error) {
	w.once.Do(func() { w.world, w.err = w.Live.World(ctx, now) })
	return w.world, w.err
}

func (w *World) Gather(ctx context.Context, policy *v1alpha1.RemediationPolicy, now time.Time) (*planning.Gathered, error) {
	return planning.Gather(ctx, w, planning.Question{Policy: policy, InitiatedBy: planner.InitiatedByItself, Now: now})
}

func Make(ctx context.Context, inv *invocation.Invocation, c *invocation.Cluster, world *World, policy *v1alpha1.RemediationPolicy, g *planning.Gathered) (*Report, error) {
	r := &Report{
		Policy: policy.Name, Mode: actions.ModeOf(policy), Selected: g.Input.Scope.Selected, Drifted: len(g.Input.Drifts),
		Plans: []Plan{}, LeftOut: []LeftOut{},
	}
	for _, problem := range g.Problems {
		r.Problems = append(r.Problems, problem.Error())
	}
	if len(r.Problems) > 0 {
		return r, nil
	}
	out := planner.Make(&g.Input)
	r.Eligible, r.NextLook = out.Eligible, timeOrNil(out.NextLook)
	if !g.Input.Opening.Open {
		r.Waiting = g.Input.Opening.Why
	}
	for _, d := range out.Notify {
		r.Notify = append(r.Notify, d.Namespace+"/"+guarded.TargetName(&d.Target))
	}
	for i := range out.LeftOut {
		l := &out.LeftOut[i]
		r.LeftOut = append(r.LeftOut, LeftOut{
			Namespace: l.Drift.Namespace, Object: guarded.TargetName(&l.Drift.Target), Reason: string(l.Reason), Message: l.Message, Until: timeOrNil(l.Until),
		})
	}
	tries := &tryer{Cluster: c, world: world, now: inv.Now()}
	for i := range out.Plans {
		p, err := tries.plan(ctx, &out.Plans[i])
		if err != nil {
			return nil, err
		}
		r.Plans = append(r.Plans, p)
	}
	return r, nil
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func describe(inv *invocation.Invocation, r *Report, wide bool) string {
	d := &invocation.Description{}
	steps := 0
	for i := range r.Plans {
		steps += len(r.Plans[i].Steps)
	}
	d.Line(0, "Policy %s (%s): %s for %s; %d drifted, of %d selected.", r.Policy, r.Mode, plural.Of(len(r.Plans), "plan"), plural.Of(steps, "object"), r.Drifted, r.Selected)
	for _, problem := range r.Problems {
		d.Line(1, "it makes no plans: %s", problem)
	}
	if r.Waiting != "" {
		d.Line(1, "%s", r.Waiting)
	}
	for i := range r.Plans {
		describePlan(inv, d, &r.Plans[i], wide)
	}
	if len(r.Notify) > 0 {
		d.Section("Tells people about, and writes nothing")
		for _, object := range r.Notify {
			d.Line(1, "%s", object)
		}
	}
	if len(r.LeftOut) > 0 {
		d.Section("Left out")
	}
	for _, l := range r.LeftOut {
		until := ""
		if l.Until != nil {
			until = " (" + inv.FormatUntil(metav1.NewTime(*l.Until)) + ")"
		}
		d.Line(1, "%s/%s  %s: %s%s", l.Namespace, l.Object, l.Reason, l.Message, until)
	}
	d.Line(0, "")
	d.Line(0, "%s", verdict(r))
	return d.String()
}

func describePlan(inv *invocation.Invocation, d *invocation.Description, p *Plan, wide bool) {
	when := "begins at once"
	if p.ScheduledFor != nil {
		when = "waits " + inv.FormatUntil(metav1.NewTime(*p.ScheduledFor))
	}
	d.Section(fmt.Sprintf("Plan %s/%s, %s", p.Namespace, p.Name, when))
	for i := range p.Steps {
		s := &p.Steps[i]
		d.Line(1, "%s %d  %s  %s  %s", s.Outcome.mark(), i, s.Object, s.Action, s.Outcome.words())
		if s.Message != "" {
			d.Line(3, "%s", s.Message)
		}
		if len(s.FieldManagers) > 0 {
			d.Line(3, "its fields go back to %s", strings.Join(s.FieldManagers, ", "))
		}
		d.Line(3, "severity %s (%d), since %s, by %s", s.Severity, s.Score, inv.FormatAge(metav1.NewTime(s.FirstSeen)), invocation.ListActors(s.Actors))
		for _, change := range s.Changes {
			describeChange(d, change, wide)
		}
	}
}

// describeChange is one path that the write changes: from what, to what.
func describeChange(d *invocation.Description, c comparison.Change, wide bool) {
	limit := guarded.ValueWidth
	if wide {
		limit = 1 << 16 // as long as it is
	}
	before, after := invocation.Shorten(c.Before, limit), invocation.Shorten(c.After, limit)
	switch {
	case c.Before == "":
		d.Line(3, "%s: + %s", invocation.NamePath(c.Path), after)
	case c.After == "":
		d.Line(3, "%s: - %s", invocation.NamePath(c.Path), before)
	default:
		d.Line(3, "%s: %s → %s", invocation.NamePath(c.Path), before, after)
	}
}

func verdict(r *Report) string {
	total, good := 0, 0
	for i := range r.Plans {
		for j := range r.Plans[i].Steps {
			total++
			if r.Plans[i].Steps[j].Outcome == outcomeConverges {
				good++
			}
		}
	}
	switch {
	case len(r.Problems) > 0:
		return "The policy has to be put right first."
	case total == 0:
		return "Nothing would be written."
	case good == total && total == 1:
		return "The write would lead to the authorized state. Nothing was stored."
	case good == total:
		return fmt.Sprintf("All %d writes would lead to the authorized state. Nothing was stored.", total)
	}
	return fmt.Sprintf("%d of %d writes would lead to the authorized state. Nothing was stored.", good, total)
}

// oneLine is for texts of others that go over several lines.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
