// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

type statusOptions struct {
	guarded.Selection
	invocation.ListOutput
	exitCode bool
}

// Command returns the command "status".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	o := &statusOptions{ListOutput: invocation.NewListOutput()}
	cmd := &cobra.Command{
		Use:   "status [TYPE | TYPE/NAME ...]",
		Short: "Show the state of guarded objects, worst first",
		Long: `Show the state of guarded objects, worst first: the number and severity of
differences, their writer and their age.

With --exit-code the answer is the exit code: 0 when every object shown is in
sync, and 1 when one drifted or is missing. It is 2 when the state is unknown (an
object that could not be read, no guarded object, or an error).`,
		Example: invocation.Examples(
			"# All guarded objects of the namespace", "%s status",
			"# Of all namespaces, with score, authorizer and guards", "%s status -A -o wide",
			"# One object, or all Deployments with a label", "%s status deploy/web\n  kubectl plumbline status deploy -l app=web",
			"# Follow all of them", "%s status -A --watch",
			"# Fail a pipeline when something drifted", "%s status -n shop --exit-code"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.status(cmd.Context(), cmd, args, o)
			if _, answered := err.(*invocation.ExitError); err != nil && !answered && o.exitCode { //nolint:errorlint // our own, never wrapped
				return &invocation.ExitError{Code: invocation.ExitTrouble, Err: err}
			}
			return err
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	o.Selection.AddFlags(cmd)
	o.ListOutput.AddFlags(cmd, "Baselines")
	invocation.AddWatchFlag(cmd, &o.Watch)
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "Exit with 1 when an object drifted or is missing, with 2 when that cannot be said.")
	return cmd
}

func (a *app) status(ctx context.Context, cmd *cobra.Command, args []string, o *statusOptions) error {
	if o.Watch && o.exitCode {
		return invocation.UsageErrorf(cmd, "--watch has no end, so it has no --exit-code")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	printer, err := o.Printer(cmd, c.Scheme())
	if err != nil {
		return err
	}
	show := func(to *invocation.Invocation) error {
		return (&app{Invocation: to}).showStatus(ctx, c, cmd, args, printer, o)
	}
	if !o.Watch {
		return show(a.Invocation)
	}
	options := &client.ListOptions{Namespace: c.Namespace}
	if o.AllNamespaces {
		options.Namespace = metav1.NamespaceAll
	}
	return a.ShowChanges(ctx, c, &v1alpha1.BaselineList{}, options, show)
}

// showStatus reads the Baselines that the arguments name, and prints them.
func (a *app) showStatus(ctx context.Context, c *invocation.Cluster, cmd *cobra.Command, args []string, printer *invocation.ListPrinter, o *statusOptions) error {
	found, missing := guarded.Select(ctx, c, cmd, args, o.Selection)
	if missing != nil && !found.Named {
		return missing
	}
	if err := a.printBaselines(printer, found, c.Namespace, o); err != nil {
		return err
	}
	if missing != nil {
		return missing
	}
	if o.exitCode {
		return statusExitCode(found.Baselines)
	}
	return nil
}

// printBaselines prints what was found, worst first.
func (a *app) printBaselines(printer *invocation.ListPrinter, found guarded.Selected, namespace string, o *statusOptions) error {
	wording.SortWorstFirst(found.Baselines)
	if printer.Objects == nil {
		return a.printStatus(found.Baselines, namespace, o, printer.Wide)
	}
	objects := make([]client.Object, len(found.Baselines))
	for i := range found.Baselines {
		objects[i] = &found.Baselines[i]
	}
	return printer.Print(a.Out, "Baseline", objects, found.Named)
}

func (a *app) printStatus(baselines []v1alpha1.Baseline, namespace string, o *statusOptions, wide bool) error {
	if len(baselines) == 0 {
		where := fmt.Sprintf(" in %s namespace", namespace)
		if o.AllNamespaces {
			where = ""
		}
		_, err := fmt.Fprintf(a.ErrOut, "No guarded objects found%s.\n", where)
		return err
	}
	columns := []invocation.Column{
		{Name: "Object"}, {Name: "State"}, {Name: "Severity"}, {Name: "Findings"}, {Name: "Actor"}, {Name: "Since"},
		{Name: "Score", Wide: true}, {Name: "Path", Wide: true}, {Name: "Authorized-By", Wide: true}, {Name: "Revision", Wide: true}, {Name: "Guards", Wide: true}, {Name: "Last-Check", Wide: true},
	}
	if o.AllNamespaces {
		columns = append([]invocation.Column{{Name: "Namespace"}}, columns...)
	}
	rows := make([][]any, 0, len(baselines))
	for i := range baselines {
		row := a.statusRow(&baselines[i])
		if o.AllNamespaces {
			row = append([]any{baselines[i].Namespace}, row...)
		}
		rows = append(rows, row)
	}
	if err := a.PrintTable(invocation.TableOptions{Wide: wide, NoHeaders: o.NoHeaders}, columns, rows); err != nil || o.NoHeaders {
		return err
	}
	return a.Print("\n", wording.Summarize(baselines).String(), "\n")
}

func (a *app) statusRow(b *v1alpha1.Baseline) []any {
	severity, score, since := "", "", ""
	if b.Status.Severity != nil {
		severity = string(b.Status.Severity.Level)
		score = fmt.Sprint(b.Status.Severity.Score)
	}
	if b.Status.FirstSeenTime != nil && actions.StandingOf(b) != actions.StandingInSync {
		since = a.FormatAge(*b.Status.FirstSeenTime)
	}
	by, revision := "<none>", "<none>"
	if authorized := b.Spec.Authorized; authorized != nil {
		by, revision = wording.NameActor(authorized.By), fmt.Sprint(authorized.Number)
	}
	lastCheck := "<unknown>"
	if b.Status.LastCheckTime != nil {
		lastCheck = a.FormatAge(*b.Status.LastCheckTime)
	}
	path := ""
	if len(b.Status.Findings) > 0 {
		path = wording.NamePath(b.Status.Findings[0].Path)
	}
	return []any{
		wording.ObjectOf(b), wording.DescribeState(b), severity, fmt.Sprint(actions.CountFindings(b)), actorsWords(b), since,
		score, path, by, revision, strings.Join(b.Status.Guards, ","), lastCheck,
	}
}

// actorsWords names the writer of the worst finding and counts the others.
func actorsWords(b *v1alpha1.Baseline) string {
	var actors []string
	for i := range b.Status.Findings {
		name := wording.NameActor(b.Status.Findings[i].Actor.User)
		if !slices.Contains(actors, name) {
			actors = append(actors, name)
		}
	}
	switch len(actors) {
	case 0:
		return ""
	case 1:
		return actors[0]
	default:
		return fmt.Sprintf("%s +%d more", actors[0], len(actors)-1)
	}
}

// statusExitCode answers for CI. Nothing to look at is no success: a wrong
// namespace would pass otherwise.
func statusExitCode(baselines []v1alpha1.Baseline) error {
	s := wording.Summarize(baselines)
	switch {
	case s[actions.StandingDrifted]+s[actions.StandingMissing] > 0:
		return &invocation.ExitError{Code: invocation.ExitDifferent}
	case s[actions.StandingUnknown] > 0 || s[actions.StandingInSync] == 0:
		return &invocation.ExitError{Code: invocation.ExitTrouble}
	default:
		return nil
	}
}
