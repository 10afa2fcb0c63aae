// SPDX-License-Identifier: Apache-2.0

package lift

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// app carries out the command with an invocation.
type app struct{ *invocation.Invocation }

// kind has the words for requests to lift a quarantine.
var kind = guarded.RequestKind{
	Done: "lifted", Requested: "lift requested", Pending: "the lift is requested",
	Missing: "has not ended the quarantine", Subject: "the quarantine of %s",
}

// Command returns the command "lift".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var o guarded.RequestOptions
	cmd := &cobra.Command{
		Use:   "lift TYPE/NAME ...",
		Short: wording.Lift.Short, Long: wording.Lift.Long,
		Example: invocation.Examples(
			"# Send requests again, with a reason", "%s lift deploy/web --reason 'checked the image, INC-7'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.lift(cmd, args, o)
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	o.AddFlags(cmd, &kind, "ended the quarantines")
	return cmd
}

func (a *app) lift(cmd *cobra.Command, args []string, o guarded.RequestOptions) error {
	if len(args) == 0 {
		return invocation.UsageErrorf(cmd, "name objects as TYPE/NAME")
	}
	if err := o.Validate(cmd); err != nil {
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
	var requests []guarded.Request
	for i := range found.Baselines {
		b := &found.Baselines[i]
		if b.Status.Quarantine == nil {
			failed = errors.Join(failed, a.Print(wording.QualifiedName(b), " is not in quarantine\n"))
			continue
		}
		requests = append(requests, requestLift(c, b, o.Reason))
	}
	return errors.Join(failed, guarded.SendRequests(cmd.Context(), a.Invocation, c, &kind, requests, o))
}

// requestLift asks that the quarantine that is shown ends.
func requestLift(c *invocation.Cluster, shown *v1alpha1.Baseline, reason string) guarded.Request {
	return guarded.Request{Baseline: shown, Send: func(ctx context.Context, user authenticationv1.UserInfo, dryRun bool) (guarded.Await, error) {
		request := v1alpha1.LiftRequest{RequestedBy: user.Username, RequestedByGroups: actions.NameGroups(user.Groups), Reason: reason}
		sent, err := actions.RequestLift(ctx, c, shown, request, dryRun)
		return func(ctx context.Context) (guarded.Outcome, error) {
			outcome, err := actions.AwaitLift(ctx, c, sent)
			words := kind.Done
			if outcome.Progress == actions.Refused {
				words = outcome.Message
			}
			return guarded.Outcome{Progress: outcome.Progress, Words: words}, err
		}, err
	}}
}
