// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

// kind has the words for requests to accept.
var kind = guarded.RequestKind{
	Done: "accepted", Requested: "acceptance requested", Pending: "acceptance is requested", Missing: "has not taken it", Subject: "%s",
}

type acceptOptions struct {
	guarded.Selection
	requests guarded.RequestOptions
	filter   actions.AcceptFilter
	all      bool
	yes      bool
}

// Command returns the command "accept".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var o acceptOptions
	cmd := &cobra.Command{
		Use:   "accept (TYPE/NAME ... | [TYPE] --all | -l SELECTOR | --since AGE | --by USER)",
		Short: "Authorize the observed state",
		Long: `Ask to make the observed state of an object its authorized state. The request
names the observed hash that is shown: if the object changes before the
assessor sees the request, the object is not authorized. Accepting an object that
is gone retires its Baseline. Accepting an imported object that is in sync records
that you vouch for it.

--since and --by pick objects if all of their differences are that young, or by
that user; the command names an object with other differences, and leaves it alone.
Accepting in bulk shows the objects first and asks for confirmation on
a terminal; elsewhere it needs --yes.`,
		Example: invocation.Examples(
			"# Accept the observed state, with a reason", "%s accept deploy/web --reason 'hotfix INC-7, approved by ops'",
			"# Accept the changes by alice within the last hour, in all namespaces", "%s accept -A --by alice --since 1h",
			"# Preview that", "%s accept -A --by alice --since 1h --dry-run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.accept(cmd, args, o)
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	o.AddFlags(cmd)
	o.requests.AddFlags(cmd, &kind, "taken the requests")
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "Accept all drifted and missing objects of the namespace, or of TYPE in it.")
	flags.DurationVar(&o.filter.Since, "since", 0, "Only objects with no difference older than this time, e.g. 1h.")
	flags.StringVar(&o.filter.By, "by", "", "Only objects with no difference by another user than this one.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask for confirmation.")
	return cmd
}

func (o *acceptOptions) validate(cmd *cobra.Command, args []string) error {
	bulk := o.all || o.Labels != "" || o.filter != actions.AcceptFilter{}
	named := len(args) > 1 || (len(args) == 1 && strings.Contains(args[0], "/"))
	switch {
	case !bulk && !named:
		return invocation.UsageErrorf(cmd, "name objects as TYPE/NAME, or select them with --all, -l, --since or --by")
	case named && (o.all || o.filter != actions.AcceptFilter{}):
		return invocation.UsageErrorf(cmd, "--all, --since and --by select in bulk and exclude TYPE/NAME")
	}
	return o.validateValues(cmd)
}

func (o *acceptOptions) validateValues(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("since") && o.filter.Since <= 0:
		return invocation.UsageErrorf(cmd, "--since must be longer than 0, not %s", o.filter.Since)
	case cmd.Flags().Changed("by") && o.filter.By == "":
		return invocation.UsageErrorf(cmd, "--by needs a user name")
	}
	return o.requests.Validate(cmd)
}

func (a *app) accept(cmd *cobra.Command, args []string, o acceptOptions) error {
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	found, failed := guarded.Select(cmd.Context(), c, cmd, args, o.Selection)
	if failed != nil && !found.Named {
		return failed
	}
	wording.SortWorstFirst(found.Baselines)
	candidates, refused := actions.PlanAccept(found.Baselines, found.Named, o.filter, a.Now())
	failed = errors.Join(failed, a.tellRefused(refused, found.Named))
	if len(candidates) == 0 {
		if failed == nil && !found.Named {
			return a.Print("Nothing to accept.\n")
		}
		return failed
	}
	if err := a.showCandidates(candidates); err != nil {
		return err
	}
	if !found.Named && o.requests.DryRun == "none" {
		if err := a.Confirm(cmd.Context(), o.yes, acceptQuestion(len(candidates))); err != nil {
			return err
		}
	}
	requests := make([]guarded.Request, len(candidates))
	for i := range candidates {
		requests[i] = requestAccept(c, &candidates[i], o.requests.Reason)
	}
	return errors.Join(failed, guarded.SendRequests(cmd.Context(), a.Invocation, c, &kind, requests, o.requests))
}

// tellRefused names the objects that are left alone. It is an error only for objects that
// the command line named.
func (a *app) tellRefused(refused []actions.AcceptRefusal, named bool) error {
	var failed []error
	for _, r := range refused {
		switch {
		case named && r.NothingToDo():
			if err := a.Print(wording.QualifiedName(r.Baseline), " ", refusalWords(r), "\n"); err != nil {
				return err
			}
		case named:
			failed = append(failed, fmt.Errorf("%s was not accepted: %s", wording.QualifiedName(r.Baseline), refusalWords(r)))
		case !r.NothingToDo() && r.Reason != actions.RefusedUnmatched:
			a.Warn("%s is left alone: %s", invocation.Printable(wording.QualifiedName(r.Baseline)), invocation.Printable(refusalWords(r)))
		}
	}
	return errors.Join(failed...)
}

// showCandidates goes to standard error: standard output has one line per
// object, for scripts.
func (a *app) showCandidates(candidates []actions.AcceptCandidate) error {
	var b strings.Builder
	b.WriteString("To be accepted as it runs now:\n")
	for i := range candidates {
		baseline := &candidates[i].Baseline
		fmt.Fprintf(&b, "%s  %s  %s\n", invocation.Printable(wording.QualifiedName(baseline)), wording.DescribeState(baseline), candidates[i].Hash)
		for j := range baseline.Status.Findings {
			f := &baseline.Status.Findings[j]
			fmt.Fprintf(&b, "    %s  %s  by %s, %s\n", invocation.Printable(wording.NamePath(f.Path)), wording.DescribeChange(f, false), invocation.Printable(wording.NameActor(f.Actor.User)), a.FormatAgo(f.FirstSeenTime))
		}
		if more := actions.CountFindings(baseline) - len(baseline.Status.Findings); more > 0 {
			fmt.Fprintf(&b, "    ... and %d more\n", more)
		}
	}
	_, err := io.WriteString(a.ErrOut, b.String())
	return err
}

func acceptQuestion(count int) invocation.Question {
	return invocation.Question{
		Ask: fmt.Sprintf("Accept %d object(s)?", count), Otherwise: "nothing was accepted", What: "accepting in bulk",
	}
}

// requestAccept asks that the state that is shown becomes the authorized one.
func requestAccept(c *invocation.Cluster, shown *actions.AcceptCandidate, reason string) guarded.Request {
	return guarded.Request{Baseline: &shown.Baseline, Send: func(ctx context.Context, user authenticationv1.UserInfo, dryRun bool) (guarded.Await, error) {
		request := v1alpha1.AcceptRequest{RequestedBy: user.Username, RequestedByGroups: actions.NameGroups(user.Groups), Reason: reason}
		sent, err := actions.RequestAccept(ctx, c, shown, request, dryRun)
		return func(ctx context.Context) (guarded.Outcome, error) {
			outcome, err := actions.AwaitAccept(ctx, c, sent)
			return guarded.Outcome{Progress: outcome.Progress, Words: acceptWords(outcome)}, err
		}, err
	}}
}
