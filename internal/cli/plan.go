// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

func (a *app) planCommand() *cobra.Command {
	return group("plan", "Show remediation plans, and execute, pause, resume or cancel them",
		`Show the plans by which drift is put back, what a policy would plan now, and ask
the executor to begin, pause, go on with or end a plan.

A plan never changes. What a person asks of it stands beside it, with their name,
and the executor answers in its status.`,
		a.planListCommand(), a.planShowCommand(), a.planPreviewCommand(), a.planControlCommand(executeVerb), a.planControlCommand(pauseVerb),
		a.planControlCommand(resumeVerb), a.planControlCommand(cancelVerb))
}

type planListOptions struct {
	listOutput
	labels        string
	allNamespaces bool
	policy        string
	phases        []string
}

func (a *app) planListCommand() *cobra.Command {
	o := &planListOptions{listOutput: newListOutput()}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List plans, those that have not ended first",
		Long: `List the remediation plans of the namespace, those that have not ended first,
newest first: whose they are, how far they are, and what they wait for.`,
		Example: examples(
			"# The plans of the namespace", "%s plan list",
			"# What one policy is doing, everywhere", "%s plan list -A --policy production",
			"# What waits, and until when", "%s plan list -A --phase Scheduled,Deferred -o wide"),
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.planList(cmd, o) },
	}
	o.addFlags(cmd, "RemediationPlans")
	flags := cmd.Flags()
	flags.StringVarP(&o.labels, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.")
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "If present, across all namespaces. The namespace in the current context is ignored even if given with --namespace.")
	flags.StringVar(&o.policy, "policy", "", "Only plans of this RemediationPolicy.")
	flags.StringSliceVar(&o.phases, "phase", nil, "Only plans in these phases, e.g. Running,Deferred.")
	completeValues(cmd, "phase", phaseNames()...)
	mustComplete(cmd, "policy", a.completePolicy())
	return cmd
}

// phases of a plan, in the order in which they are listed: what has not ended
// comes first.
var phases = []v1alpha1.PlanPhase{
	v1alpha1.PlanRunning, v1alpha1.PlanSealing, v1alpha1.PlanPaused, v1alpha1.PlanDeferred, v1alpha1.PlanScheduled, v1alpha1.PlanCreated,
	v1alpha1.PlanFailed, v1alpha1.PlanSkipped, v1alpha1.PlanPartialSuccess, v1alpha1.PlanSucceeded, v1alpha1.PlanCanceled, v1alpha1.PlanSuperseded,
}

func phaseNames() []string {
	names := make([]string, 0, len(phases))
	for _, phase := range phases {
		names = append(names, string(phase))
	}
	return names
}

func (o *planListOptions) selects(p *v1alpha1.RemediationPlan) bool {
	return (o.policy == "" || p.Spec.Plan.Policy.Name == o.policy) &&
		(len(o.phases) == 0 || slices.Contains(o.phases, string(phaseOf(p))))
}

func (a *app) planList(cmd *cobra.Command, o *planListOptions) error {
	for _, phase := range o.phases {
		if !slices.Contains(phaseNames(), phase) {
			return usageErrorf(cmd, "there is no phase %q, want one of %s", phase, strings.Join(phaseNames(), ", "))
		}
	}
	selector, err := labels.Parse(o.labels)
	if err != nil {
		return usageErrorf(cmd, "unable to parse selector %q: %v", o.labels, err)
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	printer, err := o.printer(cmd, c.Scheme())
	if err != nil {
		return err
	}
	namespace := c.namespace
	if o.allNamespaces {
		namespace = metav1.NamespaceAll
	}
	plans, err := c.plans(cmd.Context(), &client.ListOptions{Namespace: namespace, LabelSelector: selector})
	if err != nil {
		return err
	}
	plans = slices.DeleteFunc(plans, func(p v1alpha1.RemediationPlan) bool { return !o.selects(&p) })
	sortPlans(plans)
	if printer.objects != nil {
		objects := make([]client.Object, len(plans))
		for i := range plans {
			objects[i] = &plans[i]
		}
		return printer.print(a.Out, "RemediationPlan", objects, false)
	}
	return a.printPlans(plans, namespace, o, printer.wide)
}

func (c *cluster) plans(ctx context.Context, options ...client.ListOption) ([]v1alpha1.RemediationPlan, error) {
	list := &v1alpha1.RemediationPlanList{}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (c *cluster) plan(ctx context.Context, name string) (*v1alpha1.RemediationPlan, error) {
	plan := &v1alpha1.RemediationPlan{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, plan); err != nil {
		return nil, err
	}
	return plan, nil
}

func (a *app) printPlans(plans []v1alpha1.RemediationPlan, namespace string, o *planListOptions, wide bool) error {
	if len(plans) == 0 {
		where := fmt.Sprintf(" in %s namespace", namespace)
		if namespace == metav1.NamespaceAll {
			where = ""
		}
		_, err := fmt.Fprintf(a.ErrOut, "No plans found%s.\n", where)
		return err
	}
	columns := []column{
		{name: "Name"}, {name: "Policy"}, {name: "Phase"}, {name: "Targets"}, {name: "Succeeded"}, {name: "Failed"}, {name: "Skipped"}, {name: "Waiting-For"}, {name: "Age"},
		{name: "Environment", wide: true}, {name: "Trigger", wide: true}, {name: "Severity", wide: true}, {name: "By", wide: true}, {name: "Scheduled-For", wide: true}, {name: "Executor", wide: true},
	}
	if o.allNamespaces {
		columns = append([]column{{name: "Namespace"}}, columns...)
	}
	rows := make([][]any, 0, len(plans))
	for i := range plans {
		row := a.planRow(&plans[i], wide)
		if o.allNamespaces {
			row = append([]any{plans[i].Namespace}, row...)
		}
		rows = append(rows, row)
	}
	if err := a.printTable(tableOptions{wide: wide, noHeaders: o.noHeaders}, columns, rows); err != nil || o.noHeaders {
		return err
	}
	return a.print("\n", summarizePlans(plans), "\n")
}

// waitingWidth is how much of what a plan waits for a table shows without -o wide.
const waitingWidth = 60

func (a *app) planRow(p *v1alpha1.RemediationPlan, wide bool) []any {
	plan, counts := &p.Spec.Plan, p.Status.Counts
	width := waitingWidth
	if wide {
		width = 1024 // longer than any
	}
	scheduled := ""
	if plan.ScheduledTime != nil {
		scheduled = timestamp(*plan.ScheduledTime)
	}
	return []any{
		p.Name, plan.Policy.Name, phaseWords(p), fmt.Sprint(len(plan.Targets)),
		fmt.Sprint(counts.Succeeded), fmt.Sprint(counts.Failed), fmt.Sprint(counts.Skipped),
		short(a.planWaitsFor(p), width), a.age(p.CreationTimestamp),
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

func summarizePlans(plans []v1alpha1.RemediationPlan) string {
	counts := map[v1alpha1.PlanPhase]int{}
	for i := range plans {
		counts[phaseOf(&plans[i])]++
	}
	var parts []string
	for _, phase := range phases {
		if n := counts[phase]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, phase))
		}
	}
	return fmt.Sprintf("%s: %s", plural.Of(len(plans), "plan"), strings.Join(parts, ", "))
}

// completePlan completes the names of plans in the namespace.
func (a *app) completePlan() cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		c, err := a.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		plans, err := c.plans(ctx, client.InNamespace(c.namespace))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		sortPlans(plans)
		var names []cobra.Completion
		for i := range plans {
			if strings.HasPrefix(plans[i].Name, typed) {
				names = append(names, cobra.CompletionWithDesc(plans[i].Name, phaseWords(&plans[i])))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
