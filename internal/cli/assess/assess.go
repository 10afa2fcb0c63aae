// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

// Command returns the group "assess" with its verbs.
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	return invocation.NewGroup("assess", "Show whether remediations helped, and are still in effect",
		`Show the assessments of remediations: whether a write helped, and whether it is
still in effect. The phase of a plan says only that its targets were written.

A policy leaves a drift to people if its remediations did not help. Forgive lets the
policy remediate the drift again.`,
		a.listCommand(), a.showCommand(), a.historyCommand(), a.explainCommand(), a.forgiveCommand())
}

type listOptions struct {
	invocation.ListOutput
	allNamespaces bool
	policy        string
	verdicts      []string
}

var verdictNames = []string{
	string(v1alpha1.VerdictEffective), string(v1alpha1.VerdictIneffective), string(v1alpha1.VerdictInconclusive), string(v1alpha1.VerdictInvalidated),
}

func (a *app) listCommand() *cobra.Command {
	o := &listOptions{ListOutput: invocation.NewListOutput()}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List assessments, those that have not ended first",
		Long: `List the assessments of the namespace, those that have not ended first, newest
first: the action, the object, and the verdict.`,
		Example: invocation.Examples(
			"# The assessments of the namespace", "%s assess list",
			"# Show remediations without help, everywhere", "%s assess list -A --verdict Ineffective,Invalidated",
			"# Of one policy, with deadlines and hashes", "%s assess list --policy production -o wide"),
		Args: invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd, o) },
	}
	o.AddFlags(cmd, "EffectivenessAssessments")
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "If present, across all namespaces. The namespace in the current context is ignored even if given with --namespace.")
	flags.StringVar(&o.policy, "policy", "", "Only assessments of plans of this RemediationPolicy.")
	flags.StringSliceVar(&o.verdicts, "verdict", nil, "Only assessments with these verdicts, e.g. Ineffective,Invalidated.")
	invocation.CompleteValues(cmd, "verdict", verdictNames...)
	invocation.MustComplete(cmd, "policy", remediation.CompletePolicy(a.Invocation))
	return cmd
}

func (a *app) list(cmd *cobra.Command, o *listOptions) error {
	for _, verdict := range o.verdicts {
		if !slices.Contains(verdictNames, verdict) {
			return invocation.UsageErrorf(cmd, "there is no verdict %q, want one of %s", verdict, strings.Join(verdictNames, ", "))
		}
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	printer, err := o.Printer(cmd, c.Scheme())
	if err != nil {
		return err
	}
	namespace := c.Namespace
	if o.allNamespaces {
		namespace = metav1.NamespaceAll
	}
	all, err := listAssessments(cmd.Context(), c, namespace)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(x v1alpha1.EffectivenessAssessment) bool {
		return o.policy != "" && x.Spec.Policy.Name != o.policy || len(o.verdicts) > 0 && !slices.Contains(o.verdicts, string(x.Status.Verdict))
	})
	actions.SortAssessments(all)
	if printer.Objects != nil {
		objects := make([]client.Object, len(all))
		for i := range all {
			objects[i] = &all[i]
		}
		return printer.Print(a.Out, "EffectivenessAssessment", objects, false)
	}
	return a.printList(all, namespace, o, printer.Wide)
}

func listAssessments(ctx context.Context, c *invocation.Cluster, namespace string) ([]v1alpha1.EffectivenessAssessment, error) {
	list := &v1alpha1.EffectivenessAssessmentList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (a *app) printList(all []v1alpha1.EffectivenessAssessment, namespace string, o *listOptions, wide bool) error {
	if len(all) == 0 {
		where := fmt.Sprintf(" in %s namespace", namespace)
		if namespace == metav1.NamespaceAll {
			where = ""
		}
		_, err := fmt.Fprintf(a.ErrOut, "No assessments found%s.\n", where)
		return err
	}
	columns := []invocation.Column{
		{Name: "Name"}, {Name: "Target"}, {Name: "Action"}, {Name: "Phase"}, {Name: "Verdict"}, {Name: "Score"}, {Name: "Reason"}, {Name: "Age"},
		{Name: "Policy", Wide: true}, {Name: "Integrity", Wide: true}, {Name: "Before", Wide: true}, {Name: "Written", Wide: true}, {Name: "Now", Wide: true}, {Name: "Deadline", Wide: true},
	}
	if o.allNamespaces {
		columns = append([]invocation.Column{{Name: "Namespace"}}, columns...)
	}
	rows := make([][]any, 0, len(all))
	for i := range all {
		row := a.row(&all[i])
		if o.allNamespaces {
			row = append([]any{all[i].Namespace}, row...)
		}
		rows = append(rows, row)
	}
	if err := a.PrintTable(invocation.TableOptions{Wide: wide, NoHeaders: o.NoHeaders}, columns, rows); err != nil || o.NoHeaders {
		return err
	}
	return a.Print("\n", summarize(all), "\n")
}

func (a *app) row(x *v1alpha1.EffectivenessAssessment) []any {
	s, score, deadline := &x.Status, "", ""
	if s.Score != nil {
		score = actions.FormatScore(*s.Score)
	}
	if s.Schedule != nil {
		deadline = wording.FormatTimestamp(s.Schedule.DeadlineTime)
	}
	return []any{
		x.Name, actions.NameTarget(&x.Spec.Target.BaselineTarget), string(x.Spec.Action), string(wording.AssessmentPhaseOf(x)), string(s.Verdict), score, string(s.Reason), a.FormatAge(x.CreationTimestamp),
		x.Spec.Policy.Name, string(s.Integrity), actions.ShortenHash(x.Spec.PreHash), actions.ShortenHash(x.Spec.PostHash), actions.ShortenHash(s.CurrentHash), deadline,
	}
}

func summarize(all []v1alpha1.EffectivenessAssessment) string {
	counts, open := map[string]int{}, 0
	for i := range all {
		if verdict := string(all[i].Status.Verdict); verdict != "" {
			counts[verdict]++
		} else if all[i].Status.Phase != v1alpha1.AssessmentFailed {
			open++
		}
	}
	var parts []string
	for _, verdict := range verdictNames {
		if n := counts[verdict]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verdict))
		}
	}
	if open > 0 {
		parts = append(parts, fmt.Sprintf("%d under way", open))
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", plural.Of(len(all), "assessment"), strings.Join(parts, ", ")), ": ")
}

// find returns the assessment of a name, or the newest one of an object that is named as TYPE/NAME.
func (a *app) find(cmd *cobra.Command, c *invocation.Cluster, args []string) (*v1alpha1.EffectivenessAssessment, error) {
	if len(args) == 1 && !strings.Contains(args[0], "/") {
		x := &v1alpha1.EffectivenessAssessment{}
		if err := c.Get(cmd.Context(), client.ObjectKey{Namespace: c.Namespace, Name: args[0]}, x); err != nil {
			return nil, err
		}
		return x, nil
	}
	t, err := guarded.ResolveOne(c, cmd, args)
	if err != nil {
		return nil, err
	}
	baseline, err := guarded.GetBaseline(cmd.Context(), c, t)
	if err != nil {
		return nil, err
	}
	all, err := listAssessments(cmd.Context(), c, c.Namespace)
	if err != nil {
		return nil, err
	}
	of := actions.SelectAssessments(all, baseline.Name)
	if len(of) == 0 {
		return nil, fmt.Errorf("no assessment of %s is there: no plan has written it, or the installation assesses no effect", t)
	}
	return &of[0], nil
}

// complete offers the names of assessments.
func (a *app) complete() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list := &v1alpha1.EffectivenessAssessmentList{}
		return a.CompleteFrom(cmd, list, typed, func() []cobra.Completion {
			var names []cobra.Completion
			for i := range list.Items {
				x := &list.Items[i]
				names = append(names, cobra.CompletionWithDesc(x.Name, strings.TrimSpace(string(wording.AssessmentPhaseOf(x))+" "+string(x.Status.Verdict))))
			}
			return names
		})
	}
}
