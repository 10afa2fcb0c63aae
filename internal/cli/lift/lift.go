// SPDX-License-Identifier: Apache-2.0

package lift

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// app carries out the command with an invocation.
type app struct{ *invocation.Invocation }

type options struct {
	reason string
	dryRun string
	wait   time.Duration
}

// Command returns the command "lift".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var o options
	cmd := &cobra.Command{
		Use:   "lift TYPE/NAME ...",
		Short: "End the quarantine of an object",
		Long: `Ask that proxies send an object new requests again. The object stays as it is, and
drifted. The policy that put it into quarantine leaves this drift alone from then on.

Those who may accept the state of an object may lift its quarantine. The quarantine also
ends by itself when the object is in sync again, and when its state is accepted.`,
		Example: invocation.Examples(
			"# Send requests again, with a reason", "%s lift deploy/web --reason 'checked the image, INC-7'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.lift(cmd, args, o)
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.reason, "reason", "", "Why, for people; at most 256 characters.")
	flags.StringVar(&o.dryRun, "dry-run", "none", `Must be "none", "server", or "client". If client, only print what would be lifted. If server, submit the requests without persisting them.`)
	flags.Lookup("dry-run").NoOptDefVal = "client"
	flags.DurationVar(&o.wait, "wait", invocation.DefaultWait, "How long to wait, in all, until the assessor has ended the quarantines; 0s: do not wait.")
	invocation.CompleteValues(cmd, "dry-run", "none", "client", "server")
	return cmd
}

func (o *options) validate(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return invocation.UsageErrorf(cmd, "name objects as TYPE/NAME")
	case o.wait < 0:
		return invocation.UsageErrorf(cmd, "--wait must not be negative, not %s", o.wait)
	case utf8.RuneCountInString(o.reason) > invocation.MaxReason:
		return invocation.UsageErrorf(cmd, "--reason has %d characters, more than %d", utf8.RuneCountInString(o.reason), invocation.MaxReason)
	case !slices.Contains([]string{"none", "client", "server"}, o.dryRun):
		return invocation.UsageErrorf(cmd, `invalid dry-run value (%s). Must be "none", "server", or "client"`, o.dryRun)
	}
	return nil
}

func (a *app) lift(cmd *cobra.Command, args []string, o options) error {
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	found, failed := guarded.Select(cmd.Context(), c, cmd, args, guarded.Selection{})
	switch {
	case failed != nil && !found.Named:
		return failed
	case !found.Named:
		return invocation.UsageErrorf(cmd, "name objects as TYPE/NAME")
	}
	var quarantined []*v1alpha1.Baseline
	for i := range found.Baselines {
		b := &found.Baselines[i]
		if b.Status.Quarantine == nil {
			failed = errors.Join(failed, a.Print(guarded.QualifiedName(b), " is not in quarantine\n"))
			continue
		}
		quarantined = append(quarantined, b)
	}
	return errors.Join(failed, a.liftAll(cmd.Context(), c, quarantined, o))
}

// liftAll sends every request before it waits for any: the assessor works on all of them
// meanwhile.
func (a *app) liftAll(ctx context.Context, c *invocation.Cluster, quarantined []*v1alpha1.Baseline, o options) error {
	var failed []error
	if o.dryRun == "client" || len(quarantined) == 0 {
		for _, b := range quarantined {
			failed = append(failed, guarded.PrintResult(a.Invocation, b, "lifted (dry run)"))
		}
		return errors.Join(failed...)
	}
	me, err := actions.AskIdentity(ctx, c)
	if err != nil {
		return err
	}
	request := v1alpha1.LiftRequest{RequestedBy: me.Username, RequestedByGroups: actions.NameGroups(me.Groups), Reason: o.reason}
	var sent []actions.LiftSent
	for _, b := range quarantined {
		one, err := actions.RequestLift(ctx, c, b, request, o.dryRun == "server")
		if err != nil {
			failed = append(failed, fmt.Errorf("the quarantine of %s was not lifted: %w", guarded.QualifiedName(b), err))
			continue
		}
		sent = append(sent, one)
	}
	switch {
	case o.dryRun == "server":
		failed = append(failed, a.tell(sent, "lifted (server dry run)"))
	case o.wait == 0:
		failed = append(failed, a.tell(sent, "lift requested"))
	default:
		failed = append(failed, a.awaitAll(ctx, c, sent, o.wait))
	}
	return errors.Join(failed...)
}

func (a *app) tell(sent []actions.LiftSent, words string) error {
	for _, one := range sent {
		if err := guarded.PrintResult(a.Invocation, one.Baseline, words); err != nil {
			return err
		}
	}
	return nil
}

// awaitAll waits for all requests under one deadline, in the order in which they were sent.
func (a *app) awaitAll(ctx context.Context, c *invocation.Cluster, sent []actions.LiftSent, patience time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed []error
	for _, one := range sent {
		name := guarded.QualifiedName(one.Baseline)
		outcome, err := actions.AwaitLift(deadline, c, one)
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(failed, ctx.Err())...)
		case deadline.Err() != nil && outcome.Progress == actions.Pending:
			failed = append(failed, fmt.Errorf("%s: the lift is requested, and the assessor has not ended the quarantine within %s", name, patience))
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: the lift is requested; waiting for it: %w", name, err))
		case outcome.Progress == actions.Refused:
			failed = append(failed, fmt.Errorf("the quarantine of %s was not lifted: %s", name, outcome.Message))
		default:
			failed = append(failed, guarded.PrintResult(a.Invocation, one.Baseline, "lifted"))
		}
	}
	return errors.Join(failed...)
}
