// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

// Command returns the group "policy" with its verbs.
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	return invocation.NewGroup("policy", "Show remediation policies, and switch them on and off",
		`Show the policies that remediate drift, switch them on and off, and explain whether a
drift would be remediated, and when.`,
		a.listCommand(), a.explainCommand(), a.modeCommand(activateMode), a.modeCommand(deactivateMode), a.modeCommand(haltMode))
}

type listOptions struct {
	invocation.ListOutput
	labels      string
	environment string
}

func (a *app) listCommand() *cobra.Command {
	o := &listOptions{ListOutput: invocation.NewListOutput()}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List policies, with their decisions and the reasons of their waits",
		Long: `List the remediation policies of the cluster: the number of drifted objects, the
number that would be remediated now, and the reason of a wait.`,
		Example: invocation.Examples(
			"# All policies", "%s policy list",
			"# Of one Environment, with severity, limits and the users that they act as", "%s policy list --environment production -o wide"),
		Args: invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd, o) },
	}
	o.AddFlags(cmd, "RemediationPolicies")
	cmd.Flags().StringVarP(&o.labels, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.")
	cmd.Flags().StringVar(&o.environment, "environment", "", "Only policies of this Environment.")
	invocation.MustComplete(cmd, "environment", remediation.CompleteEnvironment(a.Invocation))
	return cmd
}

func (a *app) list(cmd *cobra.Command, o *listOptions) error {
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
	if printer.Objects != nil {
		objects := make([]client.Object, len(policies))
		for i := range policies {
			objects[i] = &policies[i]
		}
		return printer.Print(a.Out, "RemediationPolicy", objects, false)
	}
	return a.printPolicies(policies, o, printer.Wide)
}

func (a *app) printPolicies(policies []v1alpha1.RemediationPolicy, o *listOptions, wide bool) error {
	if len(policies) == 0 {
		_, err := fmt.Fprintln(a.ErrOut, "No policies found.")
		return err
	}
	columns := []invocation.Column{
		{Name: "Name"}, {Name: "Environment"}, {Name: "Mode"}, {Name: "Trigger"}, {Name: "Action"}, {Name: "Selected"}, {Name: "Drifted"}, {Name: "Eligible"}, {Name: "Waiting-For"}, {Name: "Ready"}, {Name: "Age"},
		{Name: "Strategy", Wide: true}, {Name: "Severity", Wide: true}, {Name: "Limits", Wide: true}, {Name: "Acts-As", Wide: true}, {Name: "Last-Plan", Wide: true},
	}
	rows := make([][]any, 0, len(policies))
	for i := range policies {
		rows = append(rows, a.row(&policies[i], wide))
	}
	if err := a.PrintTable(invocation.TableOptions{Wide: wide, NoHeaders: o.NoHeaders}, columns, rows); err != nil || o.NoHeaders {
		return err
	}
	return a.Print("\n", summarize(policies), "\n")
}

// waitingWidth is the number of characters that the table shows of a cause of waiting without -o wide.
const waitingWidth = 60

func (a *app) row(p *v1alpha1.RemediationPolicy, wide bool) []any {
	s, width := &p.Spec, waitingWidth
	if wide {
		width = 1024 // longer than any
	}
	counts := [3]string{"<unknown>", "<unknown>", "<unknown>"} // the assessor has not looked at this spec
	if wording.IsLookedAt(p) {
		t := p.Status.Targets
		counts = [3]string{fmt.Sprint(t.Selected), fmt.Sprint(t.Drifted), fmt.Sprint(t.Eligible)}
	}
	ready := "<unknown>"
	if condition := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); condition != nil {
		ready = string(condition.Status)
	}
	return []any{
		p.Name, s.EnvironmentName, string(actions.ModeOf(p)), string(s.Trigger), string(s.Action), counts[0], counts[1], counts[2],
		wording.Shorten(p.Status.WaitingFor, width), ready, a.FormatAge(p.CreationTimestamp),
		string(s.Strategy), string(s.MinimumSeverity), wording.DescribeLimits(&s.Safety), planner.PrincipalOf(s).User, p.Status.LastPlanName,
	}
}

func summarize(policies []v1alpha1.RemediationPolicy) string {
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
