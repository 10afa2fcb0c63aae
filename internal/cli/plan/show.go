// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func (a *app) showCommand() *cobra.Command {
	var (
		output string
		watch  bool
	)
	cmd := &cobra.Command{
		Use:     "show NAME",
		Aliases: []string{"describe"},
		Short:   "Show the steps of a plan, its progress, and its reasons",
		Long: `Show a plan: its policy, the user with its permissions, the reason of its wait, and
its batches. Each step has its target, state, reason, duration, evidence and log.
Drift that the plan leaves out has a reason each. Durations of targets are from the
grant of the step to its end.

-o wide shows hashes in full. -o json and -o yaml print the RemediationPlan.`,
		Example: invocation.Examples(
			"# Show the progress and the log of a plan", "%s plan show production-3f9c2a",
			"# Follow its steps", "%s plan show production-3f9c2a --watch",
			"# As the cluster has it", "%s plan show production-3f9c2a -o yaml"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.show(cmd, args, output, watch) },
		ValidArgsFunction: remediation.CompletePlan(a.Invocation),
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml", "wide")
	invocation.AddWatchFlag(cmd, &watch)
	return cmd
}

func (a *app) show(cmd *cobra.Command, args []string, output string, watch bool) error {
	if err := invocation.FirstError(invocation.CheckOutput(cmd, output, "json", "yaml", "wide"), invocation.CheckWatch(cmd, watch, output)); err != nil {
		return err
	}
	name, err := invocation.OneArgument(cmd, args, "plan")
	if err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	show := func(to *invocation.Invocation) error {
		return (&app{Invocation: to}).showPlan(cmd.Context(), c, name, output)
	}
	if watch {
		return a.ShowChanges(cmd.Context(), c, &v1alpha1.RemediationPlanList{}, &client.ListOptions{Namespace: c.Namespace}, show)
	}
	return show(a.Invocation)
}

// showPlan reads a plan and prints it.
func (a *app) showPlan(ctx context.Context, c *invocation.Cluster, name, output string) error {
	plan, err := remediation.GetPlan(ctx, c, name)
	if err != nil {
		return err
	}
	if invocation.IsStructured(output) {
		plan.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RemediationPlan"))
		plan.ManagedFields = nil
		return a.PrintStructured(output, plan)
	}
	return a.Print(a.describePlan(plan, output == "wide"))
}

// describePlan is the plan for people.
func (a *app) describePlan(p *v1alpha1.RemediationPlan, wide bool) string {
	d := &invocation.Description{}
	for _, f := range wording.DescribePlan(p, wide, a.Now()) {
		d.Field(f.Label, f.Value)
	}
	d.Section("Steps")
	for i := range p.Spec.Plan.Targets {
		a.describeStep(d, p, i, wide)
	}
	d.Section("Batches")
	for i := range p.Spec.Plan.Batches {
		b := &p.Spec.Plan.Batches[i]
		d.Line(1, "%d  %s", b.Order, wording.DescribeBatch(b, i == len(p.Spec.Plan.Batches)-1))
	}
	describeLeftOut(d, &p.Spec.Plan)
	return d.String()
}

func (a *app) describeStep(d *invocation.Description, p *v1alpha1.RemediationPlan, index int, wide bool) {
	target, step := &p.Spec.Plan.Targets[index], wording.StepOf(p, index)
	d.Line(1, "%d  %s  %s  %s", index, actions.NameTarget(&target.BaselineTarget), target.Action, wording.DescribeStepState(&step))
	for _, line := range wording.DescribeStep(target, &step, wide, a.Now()) {
		d.Line(3, "%s", line)
	}
	for _, line := range step.Logs {
		d.Line(3, "| %s", line)
	}
}

func describeLeftOut(d *invocation.Description, plan *v1alpha1.PlannedRemediation) {
	if len(plan.LeftOut) == 0 {
		return
	}
	d.Section("Left out")
	for _, left := range plan.LeftOut {
		d.Line(1, "%s  %s", left.BaselineName, wording.AppendReason(left.Reason, left.Message))
	}
	if more := int(plan.LeftOutTotal) - len(plan.LeftOut); more > 0 {
		d.Line(1, "... and %d more", more)
	}
}
