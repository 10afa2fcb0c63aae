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
		ValidArgsFunction: a.completePlan,
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
	me, err := c.whoami(cmd.Context())
	if err != nil {
		return err
	}
	var failed []error
	var sent []*v1alpha1.RemediationPlan
	for _, name := range args {
		plan, err := a.askPlan(cmd.Context(), c, name, v, v1alpha1.PlanControl{Verb: v.verb, RequestedBy: me, Reason: o.reason}, o.dryRun)
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
	shown := plan.Spec.Control
	if already := v.already(plan); already != "" {
		return nil, a.planResult(plan, already)
	}
	if why := a.refuses(v, plan); why != "" {
		return nil, fmt.Errorf("%s was not %s: %s", planName(plan), v.done, why)
	}
	if v.verb == "" && plan.Spec.Plan.Trigger == v1alpha1.TriggerManual && plan.Spec.Plan.Request == nil {
		a.warn("%s begins by hand alone: to go on with it, use %s plan execute %s", planName(plan), displayName, plan.Name)
	}
	if dryRun == "client" {
		return nil, a.planResult(plan, v.done+" (dry run)")
	}
	err = submit(ctx, c, "it", plan, func(p *v1alpha1.RemediationPlan) (map[string]any, error) {
		if p.Spec.Control != shown {
			return nil, fmt.Errorf("%s since it was shown", controlWords(p.Spec.Control))
		}
		if why := a.refuses(v, p); why != "" {
			return nil, errors.New(why)
		}
		return controlPatch(control), nil
	}, dryRunOptions(dryRun)...)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s was not %s: %w", planName(plan), v.done, err)
	case dryRun == "server":
		return nil, a.planResult(plan, v.done+" (server dry run)")
	}
	return plan, nil
}

// controlPatch resumes by taking the verb away; whoever did that is told.
func controlPatch(control v1alpha1.PlanControl) map[string]any {
	return map[string]any{"spec": map[string]any{"control": map[string]any{
		"verb": orNull(string(control.Verb)), "requestedBy": control.RequestedBy, "reason": orNull(control.Reason),
	}}}
}

func (a *app) planResult(p *v1alpha1.RemediationPlan, words string) error {
	return a.print(printable(planName(p)), " ", printable(words), "\n")
}

// awaitSettlement waits until it is settled what became of the verb, and returns the plan as it
// was last. The outcome is settlePending when the deadline comes first.
func (v planVerb) awaitSettlement(deadline context.Context, c *cluster, p *v1alpha1.RemediationPlan) (outcome settled, words string, last *v1alpha1.RemediationPlan, err error) {
	outcome, last = settlePending, p
	err = until(deadline, c, p, &v1alpha1.RemediationPlanList{}, func(current *v1alpha1.RemediationPlan, deleted bool) bool {
		last = current
		outcome, words = v.settlement(current, p, deleted)
		return outcome != settlePending
	})
	return outcome, words, last, err
}

// awaitPlans waits for all requests under one deadline, in the order in which they
// were sent.
func (a *app) awaitPlans(ctx context.Context, c *cluster, sent []*v1alpha1.RemediationPlan, v planVerb, patience time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed []error
	for _, p := range sent {
		outcome, words, last, err := v.awaitSettlement(deadline, c, p)
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(failed, ctx.Err())...)
		case deadline.Err() != nil && outcome == settlePending:
			failed = append(failed, fmt.Errorf("%s: asked for, and not %s within %s: %s", planName(p), v.done, patience, a.standingWords(last)))
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: asked for; waiting for it: %w", planName(p), err))
		case outcome == settleRefused:
			failed = append(failed, fmt.Errorf("%s was not %s: %s", planName(p), v.done, words))
		default:
			if err := a.planResult(last, words); err != nil {
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
