// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

func (a *app) policyCommand() *cobra.Command {
	return group("policy", "Show remediation policies, and switch them on and off",
		`Show the policies that put drift back, switch them on and off, and explain why a
drift would be put back, or not, and when.`,
		a.policyListCommand(), a.policyExplainCommand(), a.policyModeCommand(activateMode), a.policyModeCommand(deactivateMode), a.policyModeCommand(haltMode))
}

type policyListOptions struct {
	listOutput
	labels      string
	environment string
}

func (a *app) policyListCommand() *cobra.Command {
	o := &policyListOptions{listOutput: newListOutput()}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List policies: what they would do, and what holds them back",
		Long: `List the remediation policies of the cluster: how many of their objects drifted,
how many of those would be put back now, and what holds the policy back.`,
		Example: examples(
			"# All policies", "%s policy list",
			"# Of one Environment, with severity, limits and the users as whom they act", "%s policy list --environment production -o wide"),
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.policyList(cmd, o) },
	}
	o.addFlags(cmd, "RemediationPolicies")
	cmd.Flags().StringVarP(&o.labels, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.")
	cmd.Flags().StringVar(&o.environment, "environment", "", "Only policies of this Environment.")
	mustComplete(cmd, "environment", a.completeEnvironment())
	return cmd
}

func (a *app) policyList(cmd *cobra.Command, o *policyListOptions) error {
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
	list := &v1alpha1.RemediationPolicyList{}
	if err := c.List(cmd.Context(), list, &client.ListOptions{LabelSelector: selector}); err != nil {
		return err
	}
	policies := slices.DeleteFunc(list.Items, func(p v1alpha1.RemediationPolicy) bool {
		return o.environment != "" && p.Spec.EnvironmentName != o.environment
	})
	slices.SortFunc(policies, func(x, y v1alpha1.RemediationPolicy) int {
		return cmp.Or(cmp.Compare(x.Spec.EnvironmentName, y.Spec.EnvironmentName), cmp.Compare(x.Name, y.Name))
	})
	if printer.objects != nil {
		objects := make([]client.Object, len(policies))
		for i := range policies {
			objects[i] = &policies[i]
		}
		return printer.print(a.Out, "RemediationPolicy", objects, false)
	}
	return a.printPolicies(policies, o, printer.wide)
}

func (a *app) printPolicies(policies []v1alpha1.RemediationPolicy, o *policyListOptions, wide bool) error {
	if len(policies) == 0 {
		_, err := fmt.Fprintln(a.ErrOut, "No policies found.")
		return err
	}
	columns := []column{
		{name: "Name"}, {name: "Environment"}, {name: "Mode"}, {name: "Trigger"}, {name: "Action"}, {name: "Selected"}, {name: "Drifted"}, {name: "Eligible"}, {name: "Waiting-For"}, {name: "Ready"}, {name: "Age"},
		{name: "Strategy", wide: true}, {name: "Severity", wide: true}, {name: "Limits", wide: true}, {name: "Acts-As", wide: true}, {name: "Last-Plan", wide: true},
	}
	rows := make([][]any, 0, len(policies))
	for i := range policies {
		rows = append(rows, a.policyRow(&policies[i], wide))
	}
	if err := a.printTable(tableOptions{wide: wide, noHeaders: o.noHeaders}, columns, rows); err != nil || o.noHeaders {
		return err
	}
	return a.print("\n", summarizePolicies(policies), "\n")
}

func (a *app) policyRow(p *v1alpha1.RemediationPolicy, wide bool) []any {
	s, width := &p.Spec, waitingWidth
	if wide {
		width = 1024 // longer than any
	}
	counts := [3]string{"<unknown>", "<unknown>", "<unknown>"} // nobody has looked at this spec
	if lookedAt(p) {
		t := p.Status.Targets
		counts = [3]string{fmt.Sprint(t.Selected), fmt.Sprint(t.Drifted), fmt.Sprint(t.Eligible)}
	}
	ready := "<unknown>"
	if condition := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); condition != nil {
		ready = string(condition.Status)
	}
	return []any{
		p.Name, s.EnvironmentName, string(actions.ModeOf(p)), string(s.Trigger), string(s.Action), counts[0], counts[1], counts[2],
		short(p.Status.WaitingFor, width), ready, a.age(p.CreationTimestamp),
		string(s.Strategy), string(s.MinimumSeverity), limitWords(&s.Safety), planner.PrincipalOf(s).User, p.Status.LastPlanName,
	}
}

// lookedAt says that the status speaks of the spec as it is.
func lookedAt(p *v1alpha1.RemediationPolicy) bool {
	return p.Status.ObservedGeneration != 0 && p.Status.ObservedGeneration == p.Generation
}

func limitWords(s *v1alpha1.RemediationSafety) string {
	return fmt.Sprintf("%d at once, %d/h, %d/d", s.MaxConcurrent, s.MaxPerHour, s.MaxPerDay)
}

func summarizePolicies(policies []v1alpha1.RemediationPolicy) string {
	counts := map[v1alpha1.PolicyMode]int{}
	for i := range policies {
		counts[actions.ModeOf(&policies[i])]++
	}
	noun := "policies"
	if len(policies) == 1 {
		noun = "policy"
	}
	return fmt.Sprintf("%d %s: %d active, %d observing, %d halted", len(policies), noun,
		counts[v1alpha1.PolicyModeActive], counts[v1alpha1.PolicyModeObserveOnly], counts[v1alpha1.PolicyModeHalted])
}

func (c *cluster) policy(ctx context.Context, name string) (*v1alpha1.RemediationPolicy, error) {
	policy := &v1alpha1.RemediationPolicy{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, policy); err != nil {
		return nil, err
	}
	return policy, nil
}

// completePolicy completes the names of policies, as argument or as flag.
func (a *app) completePolicy() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !cmd.HasParent() {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list := &v1alpha1.RemediationPolicyList{}
		return a.completeFrom(cmd, list, typed, func() []cobra.Completion {
			var names []cobra.Completion
			for i := range list.Items {
				names = append(names, cobra.CompletionWithDesc(list.Items[i].Name, string(actions.ModeOf(&list.Items[i]))))
			}
			return names
		})
	}
}

func (a *app) completeEnvironment() cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		list := &v1alpha1.EnvironmentList{}
		return a.completeFrom(cmd, list, typed, func() []cobra.Completion {
			var names []cobra.Completion
			for i := range list.Items {
				names = append(names, cobra.CompletionWithDesc(list.Items[i].Name, string(list.Items[i].Spec.Criticality)))
			}
			return names
		})
	}
}

// completeFrom lists objects of the cluster and offers what names makes of them.
func (a *app) completeFrom(cmd *cobra.Command, list client.ObjectList, typed string, names func() []cobra.Completion) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	c, err := a.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if err := c.List(ctx, list); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	fitting := slices.DeleteFunc(names(), func(name cobra.Completion) bool { return !strings.HasPrefix(name, typed) })
	slices.Sort(fitting)
	return fitting, cobra.ShellCompDirectiveNoFileComp
}
