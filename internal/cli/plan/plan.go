// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

// Command returns the group "plan" with its verbs.
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	return invocation.NewGroup("plan", "Show remediation plans, and execute, pause, resume or cancel them",
		`Show the plans that remediate drift, and the plans that a policy would make now. Ask
the executor to begin, pause, resume or end a plan.

The content of a plan never changes. A request by a person stands beside it, with the
name of the user, and the executor answers in its status.`,
		a.listCommand(), a.showCommand(), a.previewCommand(), a.controlCommand(executeVerb), a.controlCommand(pauseVerb),
		a.controlCommand(resumeVerb), a.controlCommand(cancelVerb))
}

type listOptions struct {
	invocation.ListOutput
	labels        string
	allNamespaces bool
	policy        string
	phases        []string
}

func (a *app) listCommand() *cobra.Command {
	o := &listOptions{ListOutput: invocation.NewListOutput()}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List plans, those that have not ended first",
		Long: `List the remediation plans of the namespace, those that have not ended first,
newest first: their policies, the targets that have succeeded, and the reasons of
their waits. -o wide adds each reason in words.`,
		Example: invocation.Examples(
			"# The plans of the namespace", "%s plan list",
			"# List the plans of one policy, everywhere", "%s plan list -A --policy production",
			"# Follow the plans of the namespace", "%s plan list --watch",
			"# List waiting plans, with their times", "%s plan list -A --phase Scheduled,Deferred -o wide"),
		Args: invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd, o) },
	}
	o.AddFlags(cmd, "RemediationPlans")
	invocation.AddWatchFlag(cmd, &o.Watch)
	flags := cmd.Flags()
	flags.StringVarP(&o.labels, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "If present, across all namespaces. The namespace in the current context is ignored even if given with --namespace.")
	flags.StringVar(&o.policy, "policy", "", "Only plans of this RemediationPolicy.")
	flags.StringSliceVar(&o.phases, "phase", nil, "Only plans in these phases, e.g. Running,Deferred.")
	invocation.CompleteValues(cmd, "phase", phaseNames()...)
	invocation.MustComplete(cmd, "policy", remediation.CompletePolicy(a.Invocation))
	return cmd
}

func phaseNames() []string {
	names := make([]string, 0, len(wording.PlanPhases))
	for _, phase := range wording.PlanPhases {
		names = append(names, string(phase))
	}
	return names
}

func (o *listOptions) selects(p *v1alpha1.RemediationPlan) bool {
	return (o.policy == "" || p.Spec.Plan.Policy.Name == o.policy) &&
		(len(o.phases) == 0 || slices.Contains(o.phases, string(wording.PhaseOf(p))))
}

func (a *app) list(cmd *cobra.Command, o *listOptions) error {
	for _, phase := range o.phases {
		if !slices.Contains(phaseNames(), phase) {
			return invocation.UsageErrorf(cmd, "there is no phase %q, want one of %s", phase, strings.Join(phaseNames(), ", "))
		}
	}
	selector, err := labels.Parse(o.labels)
	if err != nil {
		return invocation.UsageErrorf(cmd, "unable to parse selector %q: %v", o.labels, err)
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
	options := &client.ListOptions{Namespace: namespace, LabelSelector: selector}
	show := func(to *invocation.Invocation) error {
		return (&app{Invocation: to}).showPlans(cmd.Context(), c, options, printer, o)
	}
	if o.Watch {
		return a.ShowChanges(cmd.Context(), c, &v1alpha1.RemediationPlanList{}, options, show)
	}
	return show(a.Invocation)
}

// showPlans reads the plans that the flags select, and prints them.
func (a *app) showPlans(ctx context.Context, c *invocation.Cluster, options *client.ListOptions, printer *invocation.ListPrinter, o *listOptions) error {
	plans, err := remediation.ListPlans(ctx, c, options)
	if err != nil {
		return err
	}
	plans = slices.DeleteFunc(plans, func(p v1alpha1.RemediationPlan) bool { return !o.selects(&p) })
	wording.SortPlans(plans)
	if printer.Objects != nil {
		objects := make([]client.Object, len(plans))
		for i := range plans {
			objects[i] = &plans[i]
		}
		return printer.Print(a.Out, "RemediationPlan", objects, false)
	}
	return a.printPlans(plans, options.Namespace, o, printer.Wide)
}

func (a *app) printPlans(plans []v1alpha1.RemediationPlan, namespace string, o *listOptions, wide bool) error {
	if len(plans) == 0 {
		where := fmt.Sprintf(" in %s namespace", namespace)
		if namespace == metav1.NamespaceAll {
			where = ""
		}
		_, err := fmt.Fprintf(a.ErrOut, "No plans found%s.\n", where)
		return err
	}
	columns := []invocation.Column{
		{Name: "Name"}, {Name: "Policy"}, {Name: "Phase"}, {Name: "Progress"}, {Name: "Reason"}, {Name: "Effect"}, {Name: "Age"},
		{Name: "Waiting-For", Wide: true}, {Name: "Environment", Wide: true}, {Name: "Trigger", Wide: true}, {Name: "Severity", Wide: true}, {Name: "By", Wide: true}, {Name: "Scheduled-For", Wide: true}, {Name: "Executor", Wide: true},
	}
	if o.allNamespaces {
		columns = append([]invocation.Column{{Name: "Namespace"}}, columns...)
	}
	rows := make([][]any, 0, len(plans))
	for i := range plans {
		row := a.formatRow(&plans[i])
		if o.allNamespaces {
			row = append([]any{plans[i].Namespace}, row...)
		}
		rows = append(rows, row)
	}
	if err := a.PrintTable(invocation.TableOptions{Wide: wide, NoHeaders: o.NoHeaders}, columns, rows); err != nil || o.NoHeaders {
		return err
	}
	return a.Print("\n", summarize(plans), "\n")
}

// formatRow gives the cells of a plan. The reason is a code, and the wide table has its words.
func (a *app) formatRow(p *v1alpha1.RemediationPlan) []any {
	plan := &p.Spec.Plan
	scheduled := ""
	if plan.ScheduledTime != nil {
		scheduled = wording.FormatTimestamp(*plan.ScheduledTime)
	}
	return []any{
		p.Name, plan.Policy.Name, wording.DescribePhase(p), wording.FormatProgress(p), wording.CodeWaiting(p, a.Now()), string(p.Status.Effect), a.FormatAge(p.CreationTimestamp),
		wording.DescribeWaiting(p, a.Now()),
		plan.EnvironmentName, string(plan.Trigger), string(worstLevel(plan.Targets)), plan.InitiatedBy, scheduled, p.Status.Holder,
	}
}

// worstLevel is that of the worst drift when the plan was made.
func worstLevel(targets []v1alpha1.PlanTarget) v1alpha1.SeverityLevel {
	var worst v1alpha1.SeverityLevel
	for i := range targets {
		if level := targets[i].Severity.Level; severity.CompareLevels(level, worst) > 0 {
			worst = level
		}
	}
	return worst
}

func summarize(plans []v1alpha1.RemediationPlan) string {
	counts := map[v1alpha1.PlanPhase]int{}
	for i := range plans {
		counts[wording.PhaseOf(&plans[i])]++
	}
	var parts []string
	for _, phase := range wording.PlanPhases {
		if n := counts[phase]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, phase))
		}
	}
	return fmt.Sprintf("%s: %s", plural.Of(len(plans), "plan"), strings.Join(parts, ", "))
}
