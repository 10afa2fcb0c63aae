// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

type showOptions struct {
	output  string
	formula bool
}

func (a *app) showCommand() *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show NAME|TYPE/NAME",
		Short: "Show whether a write helped, and why",
		Long: `Show an assessment by its name, or the newest one of an object. It has the time of
the write, its present effect, the score and weight of each component, and the
objects that became worse beside it.

--formula computes score and verdict again from the stored components.
-o json and -o yaml print the EffectivenessAssessment.`,
		Example: invocation.Examples(
			"# Did the last repair of an object help?", "%s assess show deploy/web",
			"# Compute the score again", "%s assess show production-3f9c2a-0 --formula"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.show(cmd, args, o) },
		ValidArgsFunction: a.complete(),
	}
	invocation.AddOutputFlag(cmd, &o.output, "json", "yaml")
	cmd.Flags().BoolVar(&o.formula, "formula", false, "Compute score and verdict from the stored components.")
	return cmd
}

func (a *app) show(cmd *cobra.Command, args []string, o showOptions) error {
	if err := invocation.CheckOutput(cmd, o.output, "json", "yaml"); err != nil {
		return err
	}
	if len(args) == 0 {
		return invocation.UsageErrorf(cmd, "name one assessment, or an object as TYPE/NAME")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	x, err := a.find(cmd, c, args)
	if err != nil {
		return err
	}
	if o.output != "" {
		x.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("EffectivenessAssessment"))
		x.ManagedFields = nil
		return a.PrintStructured(o.output, x)
	}
	all, err := listAssessments(cmd.Context(), c, c.Namespace)
	if err != nil {
		return err
	}
	d := &invocation.Description{}
	a.describe(d, x)
	if x.Status.Verdict != "" && x.Spec.WrittenTime != nil {
		what, on := "write", "target"
		if x.Spec.Subject.Release != nil {
			what, on = "run", "release"
		}
		d.Line(0, "   %s by this action on this %s within 4 h; %d are a chain.%s", plural.Of(actions.CountRecent(all, x, a.Now()), what), on, effect.MostInWindow, a.breakerWords(cmd.Context(), c, x))
		a.describeRunChain(d, all, x)
	}
	if o.formula {
		describeFormula(d, x)
	}
	return a.Print(d.String())
}

// describe is an assessment for people.
func (a *app) describe(d *invocation.Description, x *v1alpha1.EffectivenessAssessment) {
	d.Line(0, "%s, %s by %s: %s", actions.NameTarget(&x.Spec.Target.BaselineTarget), x.Spec.Action, wording.NameSubject(x), wording.DescribeEnd(x))
	if x.Spec.WrittenTime == nil {
		d.Line(0, "=> %s", wording.Conclude(x))
		return
	}
	written := "written  " + a.FormatTime(x.Spec.WrittenTime)
	switch s := &x.Status; {
	case s.CompletionTime != nil:
		written += ", measured until " + wording.FormatTimestamp(*s.CompletionTime)
	case s.Schedule != nil:
		written += ", to be measured " + a.FormatUntil(s.Schedule.DeadlineTime)
	}
	d.Line(1, "%s", written)
	d.Line(1, "hash     %s", wording.DescribeIntegrity(x))
	if pair := x.Spec.DDEM002; pair != nil {
		d.Line(1, "ddem002  %s → %s at the write", cmp.Or(actions.ShortenHash(pair.PreHash), "unknown"), cmp.Or(actions.ShortenHash(pair.PostHash), "unknown"))
	}
	for _, name := range []effect.Name{effect.Health, effect.Alerts, effect.Metrics} {
		d.Line(1, "%-8s %s", strings.ToLower(string(name)), wording.DescribeComponent(x, name))
	}
	for i, beside := range x.Status.SideEffects {
		label := "beside"
		if i > 0 {
			label = ""
		}
		d.Line(1, "%-8s %s", label, beside)
	}
	d.Line(0, "=> %s", wording.Conclude(x))
}

// breakerWords tell the effect of the verdict on the breaker of the policy; empty without an effect, or if the
// plan cannot be read any more.
func (a *app) breakerWords(ctx context.Context, c *invocation.Cluster, x *v1alpha1.EffectivenessAssessment) string {
	of, plan := x.Spec.Subject.Plan, &v1alpha1.RemediationPlan{}
	if of == nil {
		return ""
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: x.Namespace, Name: of.Name}, plan); err != nil {
		if !apierrors.IsNotFound(err) {
			a.Warn("%v; the plan alone says whether the verdict turned a breaker", err)
		}
		return ""
	}
	for i := range plan.Status.Steps {
		if step := &plan.Status.Steps[i]; string(plan.UID) == of.UID && step.Index == of.Step && step.Effect != nil {
			return turnWords(step.Effect.BreakerState, x.Spec.Policy.Name)
		}
	}
	return ""
}

func turnWords(turned v1alpha1.BreakerState, policy string) string {
	switch turned {
	case v1alpha1.BreakerClosed:
		return " It closed the breaker of " + policy + "."
	case v1alpha1.BreakerOpen:
		return " It opened the breaker of " + policy + " again."
	case v1alpha1.BreakerHalfOpen, "":
	}
	return ""
}

// describeRunChain names the runs that did not help, if these are a chain.
func (a *app) describeRunChain(d *invocation.Description, all []v1alpha1.EffectivenessAssessment, x *v1alpha1.EffectivenessAssessment) {
	if x.Spec.Subject.Release == nil {
		return
	}
	actions.SortAssessments(all)
	chain := actions.FindRunChain(all, x, a.Now())
	if chain.Rule == effect.ChainNone {
		return
	}
	names := make([]string, 0, len(chain.Repairs))
	for _, r := range chain.Repairs {
		names = append(names, r.Plan)
	}
	d.Line(0, "   %s are a chain that does not help: %s.", strings.Join(names, ", "), chain.Rule)
}

// describeFormula computes score and verdict anew.
func describeFormula(d *invocation.Description, x *v1alpha1.EffectivenessAssessment) {
	components := effect.ReadComponents(&x.Status)
	reason := effect.Reason(cmp.Or(x.Status.Reason, v1alpha1.AssessedPartial))
	var terms, weights []string
	for _, name := range []effect.Name{effect.Health, effect.Alerts, effect.Metrics} {
		if c := components.Of(name); c.State == effect.Assessed && c.Score != nil {
			score := *c.Score
			if c.Bad {
				score = 0 // a score does not speak against the verdict
			}
			terms = append(terms, fmt.Sprintf("%s × %s", actions.FormatScore(score), wording.FormatWeight(effect.Weight(name))))
			weights = append(weights, wording.FormatWeight(effect.Weight(name)))
		}
	}
	score := "none"
	if got := effect.ScoreOf(reason, &components); got != nil {
		score = actions.FormatScore(*got)
	}
	d.Section(fmt.Sprintf("Formula %d", effect.Formula))
	if len(terms) > 0 {
		d.Line(1, "(%s) / (%s)", strings.Join(terms, " + "), strings.Join(weights, " + "))
	}
	d.Line(1, "score %s, verdict %s, by reason %s and hash %s", score, effect.VerdictOf(reason, effect.Integrity(x.Status.Integrity), &components), reason, cmp.Or(string(x.Status.Integrity), "Unknown"))
	if x.Status.Verdict != "" {
		d.Line(1, "stored: %s, by formula %d", wording.DescribeEnd(x), x.Status.Formula)
	}
}
