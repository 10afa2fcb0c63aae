// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

type controlOptions struct {
	reason string
	dryRun string
	yes    bool
	wait   invocation.Wait
}

func (a *app) controlCommand(v verb) *cobra.Command {
	var o controlOptions
	cmd := &cobra.Command{
		Use:               v.name + " NAME...",
		Short:             v.Short,
		Long:              v.Long,
		Example:           v.examples,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.control(cmd, args, v, o) },
		ValidArgsFunction: remediation.CompletePlan(a.Invocation),
	}
	invocation.AddReasonFlag(cmd, &o.reason)
	invocation.AddDryRunFlag(cmd, &o.dryRun, "If client, only print the request. If server, submit the request without persisting it.")
	o.wait.AddFlags(cmd, "the executor has handled the request")
	if v.asks == v1alpha1.PlanCancel {
		cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask for confirmation.")
	}
	return cmd
}

// control asks the same of every plan that is named, then waits for all.
func (a *app) control(cmd *cobra.Command, args []string, v verb, o controlOptions) error {
	if len(args) == 0 {
		return invocation.UsageErrorf(cmd, "name at least one plan")
	}
	if err := invocation.FirstError(invocation.CheckReason(cmd, o.reason), invocation.CheckDryRun(cmd, o.dryRun), o.wait.Check(cmd)); err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if v.asks == v1alpha1.PlanCancel && o.dryRun == "none" {
		if err := a.Confirm(cmd.Context(), o.yes, cancelQuestion(args)); err != nil {
			return err
		}
	}
	me, err := actions.AskIdentity(cmd.Context(), c)
	if err != nil {
		return err
	}
	var failed []error
	var sent []*v1alpha1.RemediationPlan
	for _, name := range args {
		plan, err := a.askPlan(cmd.Context(), c, name, v, v1alpha1.PlanControl{Verb: v.asks, RequestedBy: me.Username, Reason: o.reason}, o.dryRun)
		if err != nil {
			failed = append(failed, err)
		} else if plan != nil {
			sent = append(sent, plan)
		}
	}
	if o.wait.Timeout() > 0 {
		failed = append(failed, a.awaitPlans(cmd.Context(), c, sent, v, o.wait.Timeout()))
		return errors.Join(failed...)
	}
	for _, plan := range sent {
		failed = append(failed, remediation.PrintResult(a.Invocation, plan, "asked to "+v.name))
	}
	return errors.Join(failed...)
}

// cancelQuestion asks before a cancellation, which is final.
func cancelQuestion(names []string) invocation.Question {
	return invocation.Question{
		Ask:       fmt.Sprintf("Cancel %s? A cancellation is final, and the policy leaves the drift of the plan alone.", strings.Join(names, ", ")),
		Otherwise: "no plan was canceled", What: "canceling a plan",
	}
}

// askPlan sets the control of one plan. It gives the plan if there is something to
// wait for, and tells everything else.
func (a *app) askPlan(ctx context.Context, c *invocation.Cluster, name string, v verb, control v1alpha1.PlanControl, dryRun string) (*v1alpha1.RemediationPlan, error) {
	plan, err := remediation.GetPlan(ctx, c, name)
	if err != nil {
		return nil, err
	}
	if standing, already := actions.FindPlanStanding(v.asks, plan); already {
		return nil, remediation.PrintResult(a.Invocation, plan, wording.DescribePlanStanding(standing))
	}
	if refused := actions.RefusePlanVerb(v.asks, plan); refused != nil {
		return nil, fmt.Errorf("%s was not %s: %s", wording.PlanName(plan), v.done, a.refusalWords(refused))
	}
	if v.asks == actions.PlanResume && actions.NeedsExecute(plan) {
		a.Warn("%s begins by hand alone: to go on with it, use %s plan execute %s", wording.PlanName(plan), invocation.DisplayName, plan.Name)
	}
	if dryRun == "client" {
		return nil, remediation.PrintResult(a.Invocation, plan, v.done+" (dry run)")
	}
	err = actions.RequestPlanVerb(ctx, c, plan, control, dryRun == "server")
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s was not %s: %w", wording.PlanName(plan), v.done, a.wordError(err))
	case dryRun == "server":
		return nil, remediation.PrintResult(a.Invocation, plan, v.done+" (server dry run)")
	}
	return plan, nil
}

// awaitPlans waits for all requests under one deadline, in the order in which they
// were sent.
func (a *app) awaitPlans(ctx context.Context, c *invocation.Cluster, sent []*v1alpha1.RemediationPlan, v verb, patience time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed []error
	for _, p := range sent {
		outcome, last, err := actions.AwaitPlanVerb(deadline, c, v.asks, p)
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(failed, ctx.Err())...)
		case deadline.Err() != nil && outcome.Progress == actions.Pending:
			failed = append(failed, fmt.Errorf("%s: asked for, and not %s within %s: %s", wording.PlanName(p), v.done, patience, remediation.DescribeStanding(last)))
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: asked for; waiting for it: %w", wording.PlanName(p), err))
		case outcome.Progress == actions.Refused:
			failed = append(failed, fmt.Errorf("%s was not %s: %s", wording.PlanName(p), v.done, remediation.DescribeOutcome(v.done, outcome)))
		default:
			if err := remediation.PrintResult(a.Invocation, last, remediation.DescribeOutcome(v.done, outcome)); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}
