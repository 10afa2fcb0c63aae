// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// defaultWait is how long accept waits for the assessor, which answers within a
// second when it runs.
const defaultWait = 10 * time.Second

// maxReason is the bound of the API, in characters.
const maxReason = 256

type acceptOptions struct {
	selection
	filter actions.AcceptFilter
	all    bool
	reason string
	dryRun string
	yes    bool
	wait   time.Duration
}

func (a *app) acceptCommand() *cobra.Command {
	var o acceptOptions
	cmd := &cobra.Command{
		Use:   "accept (TYPE/NAME ... | [TYPE] --all | -l SELECTOR | --since AGE | --by USER)",
		Short: "Authorize what runs now",
		Long: `Ask that what runs now becomes the authorized state of an object. The request
names the observed hash that is shown: if the object changes before the
assessor sees the request, nothing is authorized. Accepting an object that is
gone retires its Baseline; accepting an imported object that is in sync records
that you vouch for it.

--since and --by pick objects all of whose differences are that young, and by
that user; an object with other differences besides is named and left alone.
Accepting in bulk shows what it is about to accept and asks for confirmation on
a terminal; elsewhere it needs --yes.`,
		Example: examples(
			"# Accept what runs, with a reason", "%s accept deploy/web --reason 'hotfix INC-7, approved by ops'",
			"# What alice did within the last hour, in all namespaces", "%s accept -A --by alice --since 1h",
			"# See what that would be", "%s accept -A --by alice --since 1h --dry-run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.accept(cmd, args, o)
		},
		ValidArgsFunction: a.completeObject(),
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "Accept all drifted and missing objects of the namespace, or of TYPE in it.")
	flags.DurationVar(&o.filter.Since, "since", 0, "Only objects whose differences were all first seen within this time, e.g. 1h.")
	flags.StringVar(&o.filter.By, "by", "", "Only objects whose differences were all made by this user.")
	flags.StringVar(&o.reason, "reason", "", "Why, for people; at most 256 characters.")
	flags.StringVar(&o.dryRun, "dry-run", "none", `Must be "none", "server", or "client". If client, only print what would be accepted. If server, submit the requests without persisting them.`)
	flags.Lookup("dry-run").NoOptDefVal = "client"
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask for confirmation.")
	flags.DurationVar(&o.wait, "wait", defaultWait, "How long to wait, in all, until the assessor has taken the requests; 0s: do not wait.")
	completeValues(cmd, "dry-run", "none", "client", "server")
	return cmd
}

func (o *acceptOptions) validate(cmd *cobra.Command, args []string) error {
	bulk := o.all || o.labels != "" || o.filter != actions.AcceptFilter{}
	named := len(args) > 1 || (len(args) == 1 && strings.Contains(args[0], "/"))
	switch {
	case !bulk && !named:
		return usageErrorf(cmd, "name objects as TYPE/NAME, or select them with --all, -l, --since or --by")
	case named && (o.all || o.filter != actions.AcceptFilter{}):
		return usageErrorf(cmd, "--all, --since and --by select in bulk and exclude TYPE/NAME")
	}
	return o.validateValues(cmd)
}

func (o *acceptOptions) validateValues(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("since") && o.filter.Since <= 0:
		return usageErrorf(cmd, "--since must be longer than 0, not %s", o.filter.Since)
	case cmd.Flags().Changed("by") && o.filter.By == "":
		return usageErrorf(cmd, "--by needs a user name")
	case o.wait < 0:
		return usageErrorf(cmd, "--wait must not be negative, not %s", o.wait)
	case utf8.RuneCountInString(o.reason) > maxReason:
		return usageErrorf(cmd, "--reason has %d characters, more than %d", utf8.RuneCountInString(o.reason), maxReason)
	case !slices.Contains([]string{"none", "client", "server"}, o.dryRun):
		return usageErrorf(cmd, `invalid dry-run value (%s). Must be "none", "server", or "client"`, o.dryRun)
	}
	return nil
}

func (a *app) accept(cmd *cobra.Command, args []string, o acceptOptions) error {
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	found, failed := c.selectBaselines(cmd.Context(), cmd, args, o.selection)
	if failed != nil && !found.named {
		return failed
	}
	sortWorstFirst(found.baselines)
	candidates, refused := actions.PlanAccept(found.baselines, found.named, o.filter, a.now())
	failed = errors.Join(failed, a.tellRefused(refused, found.named))
	if len(candidates) == 0 {
		if failed == nil && !found.named {
			return a.print("Nothing to accept.\n")
		}
		return failed
	}
	if err := a.showCandidates(candidates); err != nil {
		return err
	}
	if !found.named && o.dryRun == "none" {
		if err := a.confirm(cmd.Context(), o.yes, acceptQuestion(len(candidates))); err != nil {
			return err
		}
	}
	return errors.Join(failed, a.acceptAll(cmd.Context(), c, candidates, o))
}

// tellRefused names what is left alone. It is an error only for objects that
// the command line named.
func (a *app) tellRefused(refused []actions.AcceptRefusal, named bool) error {
	var failed []error
	for _, r := range refused {
		switch {
		case named && r.NothingToDo():
			if err := a.print(inNamespace(r.Baseline), " ", refusalWords(r), "\n"); err != nil {
				return err
			}
		case named:
			failed = append(failed, fmt.Errorf("%s was not accepted: %s", inNamespace(r.Baseline), refusalWords(r)))
		case !r.NothingToDo() && r.Reason != actions.RefusedUnmatched:
			a.warn("%s is left alone: %s", printable(inNamespace(r.Baseline)), printable(refusalWords(r)))
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
		fmt.Fprintf(&b, "%s  %s  %s\n", printable(inNamespace(baseline)), stateWords(baseline), candidates[i].Hash)
		for j := range baseline.Status.Findings {
			f := &baseline.Status.Findings[j]
			fmt.Fprintf(&b, "    %s  %s  by %s, %s\n", printable(pathName(f.Path)), changeWords(f, false), printable(actorName(f.Actor.User)), a.ago(f.FirstSeenTime))
		}
		if more := actions.CountFindings(baseline) - len(baseline.Status.Findings); more > 0 {
			fmt.Fprintf(&b, "    ... and %d more\n", more)
		}
	}
	_, err := io.WriteString(a.ErrOut, b.String())
	return err
}

func acceptQuestion(count int) question {
	return question{
		ask: fmt.Sprintf("Accept %d object(s)?", count), otherwise: "nothing was accepted", what: "accepting in bulk",
	}
}

// acceptAll sends every request before it waits for any: the assessor works on
// all of them meanwhile.
func (a *app) acceptAll(ctx context.Context, c *cluster, candidates []actions.AcceptCandidate, o acceptOptions) error {
	if o.dryRun == "client" {
		for i := range candidates {
			if err := a.result(&candidates[i].Baseline, "accepted (dry run)"); err != nil {
				return err
			}
		}
		return nil
	}
	me, err := actions.AskIdentity(ctx, c)
	if err != nil {
		return err
	}
	request := v1alpha1.AcceptRequest{RequestedBy: me.Username, RequestedByGroups: actions.NameGroups(me.Groups), Reason: o.reason}
	var failed []error
	var sent []actions.AcceptSent
	for i := range candidates {
		one, err := actions.RequestAccept(ctx, c, &candidates[i], request, o.dryRun == "server")
		if err != nil {
			failed = append(failed, fmt.Errorf("%s was not accepted: %w", inNamespace(&candidates[i].Baseline), err))
			continue
		}
		sent = append(sent, one)
	}
	switch {
	case o.dryRun == "server":
		failed = append(failed, a.tellSent(sent, "accepted (server dry run)"))
	case o.wait == 0:
		failed = append(failed, a.tellSent(sent, "acceptance requested"))
	default:
		failed = append(failed, a.awaitAll(ctx, c, sent, o.wait))
	}
	return errors.Join(failed...)
}

func (a *app) tellSent(sent []actions.AcceptSent, words string) error {
	for _, p := range sent {
		if err := a.result(p.Baseline, words); err != nil {
			return err
		}
	}
	return nil
}

// result is the one line per object that kubectl's verbs print.
func (a *app) result(b *v1alpha1.Baseline, words string) error {
	return a.print(printable(inNamespace(b)), " ", words, "\n")
}

// awaitAll waits for all requests under one deadline, in the order in which
// they were sent.
func (a *app) awaitAll(ctx context.Context, c *cluster, sent []actions.AcceptSent, patience time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed []error
	for _, p := range sent {
		outcome, err := actions.AwaitAccept(deadline, c, p)
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(failed, ctx.Err())...)
		case deadline.Err() != nil && outcome.Progress == actions.Pending:
			failed = append(failed, fmt.Errorf("%s: acceptance is requested, and the assessor has not taken it within %s", inNamespace(p.Baseline), patience))
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: acceptance is requested; waiting for it: %w", inNamespace(p.Baseline), err))
		case outcome.Progress == actions.Refused:
			failed = append(failed, fmt.Errorf("%s was not accepted: %s", inNamespace(p.Baseline), acceptWords(outcome)))
		default:
			if err := a.result(p.Baseline, acceptWords(outcome)); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}
