// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// RequestKind has the words for requests that a person makes of the assessor.
type RequestKind struct {
	// Done is the participle: "accepted".
	Done string
	// Requested tells that a request was sent: "acceptance requested".
	Requested string
	// Pending is Requested in a sentence: "acceptance is requested".
	Pending string
	// Missing tells that the assessor has not handled the request yet: "has not taken it".
	Missing string
	// Subject formats the name of an object: "the quarantine of %s".
	Subject string
}

// refuse says why a request came to no effect.
func (k *RequestKind) refuse(b *v1alpha1.Baseline, why error) error {
	return fmt.Errorf(k.Subject+" was not %s: %w", wording.QualifiedName(b), k.Done, why)
}

// Request asks the assessor for something of one object.
type Request struct {
	Baseline *v1alpha1.Baseline
	// Send stores the request of a user, and returns how its outcome is awaited.
	Send func(ctx context.Context, user authenticationv1.UserInfo, dryRun bool) (Await, error)
}

// Await waits for the outcome of a request until the context ends; then the outcome is pending.
type Await func(context.Context) (Outcome, error)

// Outcome is the outcome of a request.
type Outcome struct {
	actions.Progress
	// Words tell the effect of the request, or the reason of its refusal.
	Words string
}

// RequestOptions are the flags of a command that sends requests.
type RequestOptions struct {
	Reason string
	DryRun string
	Wait   invocation.Wait
}

// AddFlags adds the flags for a kind of request.
func (o *RequestOptions) AddFlags(cmd *cobra.Command, kind *RequestKind, wait string) {
	invocation.AddReasonFlag(cmd, &o.Reason)
	invocation.AddDryRunFlag(cmd, &o.DryRun, fmt.Sprintf("If client, only print the %s objects. If server, submit the requests without persisting them.", kind.Done))
	o.Wait.AddFlags(cmd, "the assessor has "+wait)
}

// Validate refuses values that the flags do not have.
func (o *RequestOptions) Validate(cmd *cobra.Command) error {
	return invocation.FirstError(o.Wait.Check(cmd), invocation.CheckReason(cmd, o.Reason), invocation.CheckDryRun(cmd, o.DryRun))
}

// requestSent is a request that the API server has stored.
type requestSent struct {
	*v1alpha1.Baseline
	await Await
}

// SendRequests sends every request before it waits for any: the assessor works on all of them
// meanwhile. It prints one line for each object.
func SendRequests(ctx context.Context, inv *invocation.Invocation, c *invocation.Cluster, kind *RequestKind, requests []Request, o RequestOptions) error {
	var sent []requestSent
	if o.DryRun == "client" || len(requests) == 0 {
		for _, r := range requests {
			sent = append(sent, requestSent{Baseline: r.Baseline})
		}
		return printAll(inv, sent, kind.Done+" (dry run)")
	}
	user, err := actions.AskIdentity(ctx, c)
	if err != nil {
		return err
	}
	var failed []error
	for _, r := range requests {
		await, err := r.Send(ctx, user, o.DryRun == "server")
		if err != nil {
			failed = append(failed, kind.refuse(r.Baseline, err))
			continue
		}
		sent = append(sent, requestSent{r.Baseline, await})
	}
	switch {
	case o.DryRun == "server":
		err = printAll(inv, sent, kind.Done+" (server dry run)")
	case o.Wait.Timeout() == 0:
		err = printAll(inv, sent, kind.Requested)
	default:
		err = awaitAll(ctx, inv, kind, sent, o.Wait.Timeout())
	}
	return errors.Join(append(failed, err)...)
}

func printAll(inv *invocation.Invocation, sent []requestSent, words string) error {
	for _, one := range sent {
		if err := PrintResult(inv, one.Baseline, words); err != nil {
			return err
		}
	}
	return nil
}

// awaitAll waits for all requests under one deadline, in the order in which they were sent.
func awaitAll(ctx context.Context, inv *invocation.Invocation, kind *RequestKind, sent []requestSent, patience time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed []error
	for _, one := range sent {
		name := wording.QualifiedName(one.Baseline)
		outcome, err := one.await(deadline)
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(failed, ctx.Err())...)
		case deadline.Err() != nil && outcome.Progress == actions.Pending:
			failed = append(failed, fmt.Errorf("%s: %s, and the assessor %s within %s", name, kind.Pending, kind.Missing, patience))
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %s; waiting for it: %w", name, kind.Pending, err))
		case outcome.Progress == actions.Refused:
			failed = append(failed, kind.refuse(one.Baseline, errors.New(outcome.Words)))
		default:
			failed = append(failed, PrintResult(inv, one.Baseline, outcome.Words))
		}
	}
	return errors.Join(failed...)
}
