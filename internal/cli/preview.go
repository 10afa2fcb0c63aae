// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

func (a *app) planPreviewCommand() *cobra.Command {
	var output, system string
	cmd := &cobra.Command{
		Use:   "preview POLICY",
		Short: "Show what a policy would do now, and try it as a dry run",
		Long: `Show the plans that a policy would make now, whatever its mode: the same decision
as the assessor's, from what you may read. Each write is then tried as a server
side dry run with your rights: whether it leads to the authorized state, what it
changes, and who refuses it. Nothing is stored.

The executor writes as its own service account, which a guard in mode Deny lets
through and you it may not; with --as that account the dry runs are its own.
Limits over time are not looked at here: "policy explain" tells them.`,
		Example: examples(
			"# What would it do", "%s plan preview production",
			"# The same with the executor's rights, for a program", "%s plan preview production --as system:serviceaccount:plumbline-system:plumbline-executor -o json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.planPreview(cmd, args, output, system)
		},
		ValidArgsFunction: a.completePolicy(),
	}
	addOutputFlag(cmd, &output, "json", "yaml", "wide")
	addSystemFlag(cmd, &system)
	return cmd
}

// previewReport is what preview answers.
type previewReport struct {
	Policy   string              `json:"policy"`
	Mode     v1alpha1.PolicyMode `json:"mode"`
	Selected int                 `json:"selected"`
	Drifted  int                 `json:"drifted"`
	Eligible int                 `json:"eligible"`
	// Problems of the policy that the schema does not see; with any there are no plans.
	Problems []string        `json:"problems,omitempty"`
	Waiting  string          `json:"waitingFor,omitempty"`
	Plans    []previewedPlan `json:"plans"`
	Notify   []string        `json:"notify,omitempty"`
	LeftOut  []leftOutReport `json:"leftOut"`
	NextLook *time.Time      `json:"nextLook,omitempty"`
}

// previewedPlan is a plan that would be made.
type previewedPlan struct {
	Namespace    string          `json:"namespace"`
	Name         string          `json:"name"`
	ScheduledFor *time.Time      `json:"scheduledFor,omitempty"`
	Steps        []previewedStep `json:"steps"`
}

// leftOutReport is a drift without a plan, and why.
type leftOutReport struct {
	Namespace string     `json:"namespace"`
	Object    string     `json:"object"`
	Reason    string     `json:"reason"`
	Message   string     `json:"message"`
	Until     *time.Time `json:"until,omitempty"`
}

func (a *app) planPreview(cmd *cobra.Command, args []string, output, system string) error {
	if err := checkOutput(cmd, output, "json", "yaml", "wide"); err != nil {
		return err
	}
	name, err := oneArgument(cmd, args, "policy")
	if err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	policy, err := c.policy(cmd.Context(), name)
	if err != nil {
		return err
	}
	world := c.planningWorld(system)
	gathered, err := world.gather(cmd.Context(), policy, a.serverTime(c))
	if err != nil {
		return err
	}
	report, err := a.preview(cmd.Context(), c, world, policy, gathered)
	if err != nil {
		return err
	}
	return a.printPreview(report, output)
}

func (a *app) printPreview(report *previewReport, output string) error {
	if output == "json" || output == "yaml" {
		return a.printStructured(output, report)
	}
	return a.print(a.describePreview(report, output == "wide"))
}

// planningWorld reads what plans depend on, once for all questions of a command.
type planningWorld struct {
	*planning.Live
	once  sync.Once
	world *planning.World
	err   error
}

// planningWorld reads with the rights of the user. Plumbline's own namespace is
// never guarded; what the guards cannot say is not asked.
func (c *cluster) planningWorld(system string) *planningWorld {
	if system == "" {
		system = actions.SystemNamespace
	}
	return &planningWorld{Live: &planning.Live{Reader: c, Mapper: c.mapper, Excluded: specguard.ExcludedNamespaces(system)}}
}

// World implements planning.Source.
func (w *planningWorld) World(ctx context.Context, now time.Time) (*planning.World, error) {
	w.once.Do(func() { w.world, w.err = w.Live.World(ctx, now) })
	return w.world, w.err
}

func (w *planningWorld) gather(ctx context.Context, policy *v1alpha1.RemediationPolicy, now time.Time) (*planning.Gathered, error) {
	return planning.Gather(ctx, w, planning.Question{Policy: policy, InitiatedBy: planner.InitiatedByItself, Now: now})
}

func (a *app) preview(ctx context.Context, c *cluster, world *planningWorld, policy *v1alpha1.RemediationPolicy, g *planning.Gathered) (*previewReport, error) {
	r := &previewReport{
		Policy: policy.Name, Mode: actions.ModeOf(policy), Selected: g.Input.Scope.Selected, Drifted: len(g.Input.Drifts),
		Plans: []previewedPlan{}, LeftOut: []leftOutReport{},
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
		r.Notify = append(r.Notify, d.Namespace+"/"+targetObject(&d.Target))
	}
	for i := range out.LeftOut {
		l := &out.LeftOut[i]
		r.LeftOut = append(r.LeftOut, leftOutReport{
			Namespace: l.Drift.Namespace, Object: targetObject(&l.Drift.Target), Reason: string(l.Reason), Message: l.Message, Until: timeOrNil(l.Until),
		})
	}
	tries := &tryer{cluster: c, world: world, now: a.now()}
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

func (a *app) describePreview(r *previewReport, wide bool) string {
	d := &description{}
	steps := 0
	for i := range r.Plans {
		steps += len(r.Plans[i].Steps)
	}
	d.line(0, "Policy %s (%s): %s for %s; %d drifted, of %d selected.", r.Policy, r.Mode, plural.Of(len(r.Plans), "plan"), plural.Of(steps, "object"), r.Drifted, r.Selected)
	for _, problem := range r.Problems {
		d.line(1, "it makes no plans: %s", problem)
	}
	if r.Waiting != "" {
		d.line(1, "%s", r.Waiting)
	}
	for i := range r.Plans {
		a.describePreviewedPlan(d, &r.Plans[i], wide)
	}
	if len(r.Notify) > 0 {
		d.section("Tells people about, and writes nothing")
		for _, object := range r.Notify {
			d.line(1, "%s", object)
		}
	}
	if len(r.LeftOut) > 0 {
		d.section("Left out")
	}
	for _, l := range r.LeftOut {
		until := ""
		if l.Until != nil {
			until = " (" + a.untilWords(metav1.NewTime(*l.Until)) + ")"
		}
		d.line(1, "%s/%s  %s: %s%s", l.Namespace, l.Object, l.Reason, l.Message, until)
	}
	d.line(0, "")
	d.line(0, "%s", previewVerdict(r))
	return d.String()
}

func (a *app) describePreviewedPlan(d *description, p *previewedPlan, wide bool) {
	when := "begins at once"
	if p.ScheduledFor != nil {
		when = "waits " + a.untilWords(metav1.NewTime(*p.ScheduledFor))
	}
	d.section(fmt.Sprintf("Plan %s/%s, %s", p.Namespace, p.Name, when))
	for i := range p.Steps {
		s := &p.Steps[i]
		d.line(1, "%s %d  %s  %s  %s", s.Outcome.mark(), i, s.Object, s.Action, s.Outcome.words())
		if s.Message != "" {
			d.line(3, "%s", s.Message)
		}
		if len(s.FieldManagers) > 0 {
			d.line(3, "its fields go back to %s", strings.Join(s.FieldManagers, ", "))
		}
		d.line(3, "severity %s (%d), since %s, by %s", s.Severity, s.Score, a.age(metav1.NewTime(s.FirstSeen)), actorList(s.Actors))
		for _, change := range s.Changes {
			describeChange(d, change, wide)
		}
	}
}

// describeChange is one path that the write changes: from what, to what.
func describeChange(d *description, c changeReport, wide bool) {
	limit := valueWidth
	if wide {
		limit = 1 << 16 // as long as it is
	}
	before, after := short(c.Before, limit), short(c.After, limit)
	switch {
	case c.Before == "":
		d.line(3, "%s: + %s", pathName(c.Path), after)
	case c.After == "":
		d.line(3, "%s: - %s", pathName(c.Path), before)
	default:
		d.line(3, "%s: %s → %s", pathName(c.Path), before, after)
	}
}

func previewVerdict(r *previewReport) string {
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
