// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

type planControlOptions struct {
	reason string
	dryRun string
	wait   time.Duration
}

func (a *app) planControlCommand(v planVerb) *cobra.Command {
	var o planControlOptions
	cmd := &cobra.Command{
		Use:               v.name + " NAME...",
		Short:             v.short,
		Long:              v.long,
		Example:           v.examples,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.planControl(cmd, args, v, o) },
		ValidArgsFunction: a.completePlan(),
	}
	flags := cmd.Flags()
	addReasonFlag(cmd, &o.reason)
	addDryRunFlag(cmd, &o.dryRun, "If client, only print what would be asked. If server, submit the request without persisting it.")
	flags.DurationVar(&o.wait, "wait", defaultWait, "How long to wait, in all, until the executor has done what is asked; 0s: do not wait.")
	return cmd
}

func addReasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", fmt.Sprintf("Why, for people; at most %d characters.", maxReason))
}

func checkReason(cmd *cobra.Command, reason string) error {
	if n := utf8.RuneCountInString(reason); n > maxReason {
		return usageErrorf(cmd, "--reason has %d characters, more than %d", n, maxReason)
	}
	return nil
}

var dryRuns = []string{"none", "client", "server"}

func addDryRunFlag(cmd *cobra.Command, dryRun *string, usage string) {
	cmd.Flags().StringVar(dryRun, "dry-run", "none", `Must be "none", "server", or "client". `+usage)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "client"
	completeValues(cmd, "dry-run", dryRuns...)
}

func checkDryRun(cmd *cobra.Command, dryRun string) error {
	if !slices.Contains(dryRuns, dryRun) {
		return usageErrorf(cmd, `invalid dry-run value (%s). Must be "none", "server", or "client"`, dryRun)
	}
	return nil
}

func checkWait(cmd *cobra.Command, wait time.Duration) error {
	if wait < 0 {
		return usageErrorf(cmd, "--wait must not be negative, not %s", wait)
	}
	return nil
}

// planControl asks the same of every plan that is named, then waits for all.
func (a *app) planControl(cmd *cobra.Command, args []string, v planVerb, o planControlOptions) error {
	if len(args) == 0 {
		return usageErrorf(cmd, "name at least one plan")
	}
	if err := firstOf(checkReason(cmd, o.reason), checkDryRun(cmd, o.dryRun), checkWait(cmd, o.wait)); err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	me, err := actions.AskIdentity(cmd.Context(), c)
	if err != nil {
		return err
	}
	var failed []error
	var sent []*v1alpha1.RemediationPlan
	for _, name := range args {
		plan, err := a.askPlan(cmd.Context(), c, name, v, v1alpha1.PlanControl{Verb: v.verb, RequestedBy: me.Username, Reason: o.reason}, o.dryRun)
		if err != nil {
			failed = append(failed, err)
		} else if plan != nil {
			sent = append(sent, plan)
		}
	}
	if o.wait > 0 {
		failed = append(failed, a.awaitPlans(cmd.Context(), c, sent, v, o.wait))
		return errors.Join(failed...)
	}
	for _, plan := range sent {
		failed = append(failed, a.planResult(plan, "asked to "+v.name))
	}
	return errors.Join(failed...)
}

// askPlan sets the control of one plan. It gives the plan if there is something to
// wait for, and tells everything else.
func (a *app) askPlan(ctx context.Context, c *cluster, name string, v planVerb, control v1alpha1.PlanControl, dryRun string) (*v1alpha1.RemediationPlan, error) {
	plan, err := c.plan(ctx, name)
	if err != nil {
		return nil, err
	}
	if standing, already := actions.FindPlanStanding(v.verb, plan); already {
		return nil, a.planResult(plan, planStandingWords(standing))
	}
	if refused := actions.RefusePlanVerb(v.verb, plan); refused != nil {
		return nil, fmt.Errorf("%s was not %s: %s", planName(plan), v.done, a.planRefusalWords(refused))
	}
	if v.verb == actions.PlanResume && actions.NeedsExecute(plan) {
		a.warn("%s begins by hand alone: to go on with it, use %s plan execute %s", planName(plan), displayName, plan.Name)
	}
	if dryRun == "client" {
		return nil, a.planResult(plan, v.done+" (dry run)")
	}
	err = actions.RequestPlanVerb(ctx, c, plan, control, dryRun == "server")
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s was not %s: %w", planName(plan), v.done, a.wordPlanError(err))
	case dryRun == "server":
		return nil, a.planResult(plan, v.done+" (server dry run)")
	}
	return plan, nil
}

func (a *app) planResult(p *v1alpha1.RemediationPlan, words string) error {
	return a.print(printable(planName(p)), " ", printable(words), "\n")
}

// awaitPlans waits for all requests under one deadline, in the order in which they
// were sent.
func (a *app) awaitPlans(ctx context.Context, c *cluster, sent []*v1alpha1.RemediationPlan, v planVerb, patience time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed []error
	for _, p := range sent {
		outcome, last, err := actions.AwaitPlanVerb(deadline, c, v.verb, p)
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(failed, ctx.Err())...)
		case deadline.Err() != nil && outcome.Progress == actions.Pending:
			failed = append(failed, fmt.Errorf("%s: asked for, and not %s within %s: %s", planName(p), v.done, patience, a.standingWords(last)))
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: asked for; waiting for it: %w", planName(p), err))
		case outcome.Progress == actions.Refused:
			failed = append(failed, fmt.Errorf("%s was not %s: %s", planName(p), v.done, outcomeWords(v.done, outcome)))
		default:
			if err := a.planResult(last, outcomeWords(v.done, outcome)); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}

// standingWords tells where a plan stands that has not answered in time.
func (a *app) standingWords(p *v1alpha1.RemediationPlan) string {
	if p.Status.Phase == "" {
		return "no executor has taken it; is one running?"
	}
	words := "it is " + phaseWords(p)
	if reason := p.Status.DeferralReason; reason != "" {
		words += ", " + reason
	}
	return words
}
