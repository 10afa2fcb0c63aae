// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// modeVerb is a verb that sets the mode of a policy.
type modeVerb struct {
	name string
	mode v1alpha1.PolicyMode
	done string // the participle, for results
	// short, long and examples are the command's help.
	short, long, examples string
}

var (
	activateMode = modeVerb{
		name: "activate", mode: v1alpha1.PolicyModeActive, done: "activated",
		short: "Let a policy remediate drift",
		long: `Set the mode of a policy to Active, after a preview and a confirmation; without a
terminal it needs --yes.

The policy acts with your permissions, checked at every step: your name is written
into it, and your groups. --group names the groups whose permissions it may use
instead of all of yours; --group '' means no group.

A policy with serviceAccountName acts with the permissions of that ServiceAccount, and
your name is not written into it. You need the verb impersonate on the account, or
the verb delegate on the policy.`,
		examples: invocation.Examples(
			"# Preview the policy only", "%s policy activate production --dry-run",
			"# Switch it on, with the permissions of one group of yours", "%s policy activate production --group sre --yes"),
	}
	deactivateMode = modeVerb{
		name: "deactivate", mode: v1alpha1.PolicyModeObserveOnly, done: "deactivated",
		short: "Let a policy observe without remediation",
		long: `Set the mode of a policy to ObserveOnly: it still reports its decisions, and
makes no plans. To stop remediation that is under way, use halt.`,
		examples: invocation.Examples("# Observe only", "%s policy deactivate production"),
	}
	haltMode = modeVerb{
		name: "halt", mode: v1alpha1.PolicyModeHalted, done: "halted",
		short: "Stop a policy at once, also its plans under way",
		long: `Set the mode of a policy to Halted: no plans are made, and those that have not
ended are canceled. To stop everything in an Environment, use "halt".`,
		examples: invocation.Examples("# Stop now", "%s policy halt production"),
	}
)

type modeOptions struct {
	groups []string
	dryRun string
	yes    bool
	wait   invocation.Wait
}

func (a *app) modeCommand(m modeVerb) *cobra.Command {
	var o modeOptions
	cmd := &cobra.Command{
		Use: m.name + " NAME", Short: m.short, Long: m.long, Example: m.examples,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.setMode(cmd, args, m, o) },
		ValidArgsFunction: remediation.CompletePolicy(a.Invocation),
	}
	invocation.AddDryRunFlag(cmd, &o.dryRun, "If client, only print the request. If server, submit the request without persisting it.")
	flags := cmd.Flags()
	o.wait.AddFlags(cmd, "the assessor has looked at the policy")
	if m.mode == v1alpha1.PolicyModeActive {
		flags.StringSliceVar(&o.groups, "group", nil, "Groups of yours that give the policy their permissions. If unset, all.")
		flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask for confirmation.")
	}
	return cmd
}

func (a *app) setMode(cmd *cobra.Command, args []string, m modeVerb, o modeOptions) error {
	name, err := invocation.OneArgument(cmd, args, "policy")
	if err != nil {
		return err
	}
	if err := invocation.FirstError(invocation.CheckDryRun(cmd, o.dryRun), o.wait.Check(cmd)); err != nil {
		return err
	}
	ctx := cmd.Context()
	c, err := a.Connect()
	if err != nil {
		return err
	}
	policy, err := remediation.GetPolicy(ctx, c, name)
	if err != nil {
		return err
	}
	me, err := actions.AskIdentity(ctx, c)
	if err != nil {
		return err
	}
	principal, err := actions.SelectPrincipal(policy, m.mode, me, o.groups, cmd.Flags().Changed("group"))
	if err != nil {
		return wordGroupsError(err)
	}
	if actions.IsInMode(policy, m.mode, principal) {
		return a.printResult(policy, "is "+m.done+" already")
	}
	if m.mode == v1alpha1.PolicyModeActive {
		if err := a.announceActivation(ctx, policy, principal, o); err != nil {
			return err
		}
	}
	return a.submitMode(ctx, c, policy, m, principal, o)
}

// announceActivation describes the effect of the activation, and asks.
func (a *app) announceActivation(ctx context.Context, p *v1alpha1.RemediationPolicy, as planner.Principal, o modeOptions) error {
	if _, err := io.WriteString(a.ErrOut, activationText(p, as)); err != nil {
		return err
	}
	if o.dryRun != "none" {
		return nil
	}
	return a.Confirm(ctx, o.yes, invocation.Question{Ask: "Activate " + p.Name + "?", Otherwise: "nothing was activated", What: "activating a policy"})
}

func activationText(p *v1alpha1.RemediationPolicy, as planner.Principal) string {
	d := &invocation.Description{}
	for _, f := range wording.DescribeActivation(p, as) {
		d.Field(f.Label, f.Value)
	}
	return d.String()
}

// wordGroupsError tells how to choose groups, where too much is asked of a policy.
func wordGroupsError(err error) error {
	if _, ok := errors.AsType[*actions.AccountGroupsError](err); ok {
		return fmt.Errorf("%w; leave --group out", err)
	}
	_, tooLong := errors.AsType[*actions.GroupTooLongError](err)
	_, tooMany := errors.AsType[*actions.TooManyGroupsError](err)
	if tooLong || tooMany {
		return fmt.Errorf("%w; name the groups to use with --group", err)
	}
	return err
}

func (a *app) submitMode(ctx context.Context, c *invocation.Cluster, p *v1alpha1.RemediationPolicy, m modeVerb, as planner.Principal, o modeOptions) error {
	if o.dryRun == "client" {
		return a.printResult(p, m.done+" (dry run)")
	}
	err := actions.RequestMode(ctx, c, p, m.mode, as, "", o.dryRun == "server")
	switch {
	case err != nil:
		return fmt.Errorf("%s was not %s: %w", p.Name, m.done, err)
	case o.dryRun == "server":
		return a.printResult(p, m.done+" (server dry run)")
	case o.wait.Timeout() == 0:
		return a.printResult(p, m.done)
	}
	return a.awaitMode(ctx, c, p, m, o.wait.Timeout())
}

// awaitMode waits until the assessor has looked at the policy as it is now, and
// tells the outcome.
func (a *app) awaitMode(ctx context.Context, c *invocation.Cluster, p *v1alpha1.RemediationPolicy, m modeVerb, patience time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	progress, last, err := actions.AwaitMode(deadline, c, p)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case progress == actions.Refused:
		return fmt.Errorf("%s was deleted meanwhile", p.Name)
	case deadline.Err() != nil && progress == actions.Pending:
		return fmt.Errorf("%s is %s, and the assessor has not looked at it within %s", p.Name, m.done, patience)
	case err != nil:
		return fmt.Errorf("%s is %s; waiting for the assessor: %w", p.Name, m.done, err)
	}
	words := m.done
	if m.mode == v1alpha1.PolicyModeActive {
		words += fmt.Sprintf(": %d drifted, %d to be remediated", last.Status.Targets.Drifted, last.Status.Targets.Eligible)
	}
	if err := a.printResult(last, wording.AppendReason(words, last.Status.WaitingFor)); err != nil {
		return err
	}
	if ready := meta.FindStatusCondition(last.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		a.Warn("%s is not ready: %s", last.Name, wording.AppendReason(ready.Reason, ready.Message))
	}
	return nil
}

func (a *app) printResult(p *v1alpha1.RemediationPolicy, words string) error {
	return a.Print("remediationpolicy.plumbline.dev/", invocation.Printable(p.Name), " ", invocation.Printable(words), "\n")
}
