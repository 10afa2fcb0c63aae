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
	d.Line(0, "%s, %s by %s: %s", actions.NameTarget(&x.Spec.Target.BaselineTarget), x.Spec.Action, subjectWords(x), endWords(x))
	if x.Spec.WrittenTime == nil {
		d.Line(0, "=> %s", conclusion(x))
		return
	}
	written := "written  " + a.FormatTime(x.Spec.WrittenTime)
	switch s := &x.Status; {
	case s.CompletionTime != nil:
		written += ", measured until " + invocation.FormatTimestamp(*s.CompletionTime)
	case s.Schedule != nil:
		written += ", to be measured " + a.FormatUntil(s.Schedule.DeadlineTime)
	}
	d.Line(1, "%s", written)
	d.Line(1, "hash     %s", hashWords(x))
	if pair := x.Spec.DDEM002; pair != nil {
		d.Line(1, "ddem002  %s → %s at the write", cmp.Or(actions.ShortenHash(pair.PreHash), "unknown"), cmp.Or(actions.ShortenHash(pair.PostHash), "unknown"))
	}
	components := effect.ReadComponents(&x.Status)
	for _, name := range []effect.Name{effect.Health, effect.Alerts, effect.Metrics} {
		words := componentWords(name, components.Of(name))
		if words == "" && x.Status.Verdict == "" {
			words = "not assessed yet"
		}
		d.Line(1, "%-8s %s", strings.ToLower(string(name)), cmp.Or(words, "not assessed"))
	}
	for i, beside := range x.Status.SideEffects {
		label := "beside"
		if i > 0 {
			label = ""
		}
		d.Line(1, "%-8s %s", label, beside)
	}
	d.Line(0, "=> %s", conclusion(x))
}

// breakerWords say what the verdict did to the breaker of the policy; empty if it did nothing, or the
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

func subjectWords(x *v1alpha1.EffectivenessAssessment) string {
	if plan := x.Spec.Subject.Plan; plan != nil {
		return fmt.Sprintf("plan %s, step %d", plan.Name, plan.Step)
	}
	if run := x.Spec.Subject.Release; run != nil {
		return fmt.Sprintf("release %s, run %d", run.Name, run.Run)
	}
	return "an unknown subject"
}

// endWords say how an assessment ended, or how far it is.
func endWords(x *v1alpha1.EffectivenessAssessment) string {
	s := &x.Status
	if s.Verdict == "" {
		return string(phaseOf(x))
	}
	words := string(s.Verdict)
	if s.Score != nil {
		words += fmt.Sprintf(", %s of %s", actions.FormatScore(*s.Score), actions.FormatScore(effect.Best))
	}
	return fmt.Sprintf("%s (%s)", words, s.Reason)
}

func hashWords(x *v1alpha1.EffectivenessAssessment) string {
	state := "not known whether in effect"
	switch x.Status.Integrity {
	case v1alpha1.IntegrityUnchanged:
		state = "in effect"
	case v1alpha1.IntegrityDrifted:
		state = "not in effect any more"
	case v1alpha1.IntegrityUnknown, "":
	}
	unknown := func(hash string) string { return cmp.Or(actions.ShortenHash(hash), "unknown") }
	now := unknown(x.Status.CurrentHash)
	if x.Status.CurrentHash == "" && x.Status.Integrity == v1alpha1.IntegrityDrifted {
		now = "absent"
	}
	return fmt.Sprintf("%s: %s → %s at the write, %s then", state, unknown(x.Spec.PreHash), unknown(x.Spec.PostHash), now)
}

// componentWords are score, weight and words of a component.
func componentWords(name effect.Name, c *effect.Component) string {
	switch c.State {
	case effect.Assessed:
		score := "no score"
		if c.Score != nil {
			score = actions.FormatScore(*c.Score)
		}
		against := ""
		if c.Bad {
			against = "against the write: "
		}
		return strings.TrimRight(fmt.Sprintf("%8s × %s   %s%s", score, weightWords(effect.Weight(name)), against, c.Why), " :")
	case effect.NotConfigured:
		return "not configured"
	case effect.NotAnswered:
		return strings.TrimSuffix("not assessed: "+c.Why, ": ")
	case effect.NotAssessed:
	}
	return ""
}

func weightWords(weight int64) string {
	return fmt.Sprintf("%d.%02d", weight/effect.Best, weight%effect.Best/100)
}

// conclusion says in one sentence what an assessment came to.
func conclusion(x *v1alpha1.EffectivenessAssessment) string {
	why := ""
	if x.Status.Message != "" {
		why = ": " + x.Status.Message
	}
	switch x.Status.Verdict {
	case v1alpha1.VerdictEffective:
		return "It helped and is still in effect."
	case v1alpha1.VerdictIneffective:
		return "It is in effect and did not help" + why
	case v1alpha1.VerdictInconclusive:
		return "Too little is known" + why
	case v1alpha1.VerdictInvalidated:
		return "It is not in effect any more" + why
	}
	if x.Status.Phase == v1alpha1.AssessmentFailed {
		return "It cannot be assessed" + why
	}
	return "It is being measured; \"" + invocation.DisplayName + " assess explain " + x.Name + "\" gives the reason of its wait."
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
				score = 0 // no score speaks for what the verdict speaks against
			}
			terms = append(terms, fmt.Sprintf("%s × %s", actions.FormatScore(score), weightWords(effect.Weight(name))))
			weights = append(weights, weightWords(effect.Weight(name)))
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
		d.Line(1, "stored: %s, by formula %d", endWords(x), x.Status.Formula)
	}
}
