// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

type statusOptions struct {
	selection
	listOutput
	exitCode bool
}

func (a *app) statusCommand() *cobra.Command {
	o := &statusOptions{listOutput: newListOutput()}
	cmd := &cobra.Command{
		Use:   "status [TYPE | TYPE/NAME ...]",
		Short: "Show the state of guarded objects, worst first",
		Long: `Show the state of guarded objects, worst first: what drifted, how badly, who
changed it and since when.

With --exit-code the answer is the exit code: 0 when every object shown is in
sync, 1 when one drifted or is missing, 2 when that cannot be said (an object
that could not be read, nothing guarded at all, or an error).`,
		Example: examples(
			"# All guarded objects of the namespace", "%s status",
			"# Of all namespaces, with score, authorizer and guards", "%s status -A -o wide",
			"# One object, or all Deployments with a label", "%s status deploy/web\n  kubectl plumbline status deploy -l app=web",
			"# Fail a pipeline when something drifted", "%s status -n shop --exit-code"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.status(cmd.Context(), cmd, args, o)
			if _, answered := err.(*exitError); err != nil && !answered && o.exitCode { //nolint:errorlint // our own, never wrapped
				return &exitError{code: exitTrouble, err: err}
			}
			return err
		},
		ValidArgsFunction: a.completeObject(),
	}
	o.selection.addFlags(cmd)
	o.listOutput.addFlags(cmd, "Baselines")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "Exit with 1 when an object drifted or is missing, with 2 when that cannot be said.")
	return cmd
}

func (a *app) status(ctx context.Context, cmd *cobra.Command, args []string, o *statusOptions) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	printer, err := o.printer(cmd, c.Scheme())
	if err != nil {
		return err
	}
	found, missing := c.selectBaselines(ctx, cmd, args, o.selection)
	if missing != nil && !found.named {
		return missing
	}
	if err := a.printBaselines(printer, found, c.namespace, o); err != nil {
		return err
	}
	if missing != nil {
		return missing
	}
	if o.exitCode {
		return statusExitCode(found.baselines)
	}
	return nil
}

// printBaselines prints what was found, worst first.
func (a *app) printBaselines(printer *listPrinter, found selected, namespace string, o *statusOptions) error {
	sortWorstFirst(found.baselines)
	if printer.objects == nil {
		return a.printStatus(found.baselines, namespace, o, printer.wide)
	}
	objects := make([]client.Object, len(found.baselines))
	for i := range found.baselines {
		objects[i] = &found.baselines[i]
	}
	return printer.print(a.Out, "Baseline", objects, found.named)
}

func (a *app) printStatus(baselines []v1alpha1.Baseline, namespace string, o *statusOptions, wide bool) error {
	if len(baselines) == 0 {
		where := fmt.Sprintf(" in %s namespace", namespace)
		if o.allNamespaces {
			where = ""
		}
		_, err := fmt.Fprintf(a.ErrOut, "No guarded objects found%s.\n", where)
		return err
	}
	columns := []column{
		{name: "Object"}, {name: "State"}, {name: "Severity"}, {name: "Findings"}, {name: "Actor"}, {name: "Since"},
		{name: "Score", wide: true}, {name: "Path", wide: true}, {name: "Authorized-By", wide: true}, {name: "Revision", wide: true}, {name: "Guards", wide: true}, {name: "Last-Check", wide: true},
	}
	if o.allNamespaces {
		columns = append([]column{{name: "Namespace"}}, columns...)
	}
	rows := make([][]any, 0, len(baselines))
	for i := range baselines {
		row := a.statusRow(&baselines[i])
		if o.allNamespaces {
			row = append([]any{baselines[i].Namespace}, row...)
		}
		rows = append(rows, row)
	}
	if err := a.printTable(tableOptions{wide: wide, noHeaders: o.noHeaders}, columns, rows); err != nil || o.noHeaders {
		return err
	}
	return a.print("\n", summarize(baselines).String(), "\n")
}

func (a *app) statusRow(b *v1alpha1.Baseline) []any {
	severity, score, since := "", "", ""
	if b.Status.Severity != nil {
		severity = string(b.Status.Severity.Level)
		score = fmt.Sprint(b.Status.Severity.Score)
	}
	if b.Status.FirstSeenTime != nil && actions.StandingOf(b) != actions.StandingInSync {
		since = a.age(*b.Status.FirstSeenTime)
	}
	by, revision := "<none>", "<none>"
	if authorized := b.Spec.Authorized; authorized != nil {
		by, revision = actorName(authorized.By), fmt.Sprint(authorized.Number)
	}
	lastCheck := "<unknown>"
	if b.Status.LastCheckTime != nil {
		lastCheck = a.age(*b.Status.LastCheckTime)
	}
	path := ""
	if len(b.Status.Findings) > 0 {
		path = pathName(b.Status.Findings[0].Path)
	}
	return []any{
		baselineObject(b), stateWords(b), severity, fmt.Sprint(actions.CountFindings(b)), actorsWords(b), since,
		score, path, by, revision, strings.Join(b.Status.Guards, ","), lastCheck,
	}
}

// actorsWords names the writer of the worst finding and counts the others.
func actorsWords(b *v1alpha1.Baseline) string {
	var actors []string
	for i := range b.Status.Findings {
		name := actorName(b.Status.Findings[i].Actor.User)
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

func actorName(user string) string {
	if user == "" {
		return "<unknown>"
	}
	return user
}

func pathName(path string) string {
	if path == "" {
		return "(object)"
	}
	return path
}

func stateWords(b *v1alpha1.Baseline) string {
	words := cmp.Or(string(b.Status.State), string(v1alpha1.StateUnknown))
	if b.Status.Contention != nil {
		words += " (contended)"
	}
	return words
}

func sortWorstFirst(baselines []v1alpha1.Baseline) {
	severityOf := func(b *v1alpha1.Baseline) v1alpha1.Severity {
		if b.Status.Severity == nil {
			return v1alpha1.Severity{}
		}
		return *b.Status.Severity
	}
	bad := func(b *v1alpha1.Baseline) int {
		if s := actions.StandingOf(b); s > actions.StandingDrifted {
			return int(s)
		}
		return 0 // missing and drifted rank by severity
	}
	slices.SortFunc(baselines, func(x, y v1alpha1.Baseline) int {
		return cmp.Or(
			cmp.Compare(bad(&x), bad(&y)), severity.Compare(severityOf(&y), severityOf(&x)),
			cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

type summary map[actions.Standing]int

func summarize(baselines []v1alpha1.Baseline) summary {
	s := summary{}
	for i := range baselines {
		s[actions.StandingOf(&baselines[i])]++
	}
	return s
}

func (s summary) String() string {
	var parts []string
	for _, part := range []struct {
		standing actions.Standing
		words    string
	}{
		{actions.StandingInSync, "in sync"}, {actions.StandingDrifted, "drifted"}, {actions.StandingMissing, "missing"}, {actions.StandingUnknown, "unknown"}, {actions.StandingRetired, "retired"}, {actions.StandingNotGuarded, "no longer guarded"},
	} {
		if n := s[part.standing]; n > 0 || part.standing <= actions.StandingDrifted || part.standing == actions.StandingInSync {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.words))
		}
	}
	total := 0
	for _, n := range s {
		total += n
	}
	return fmt.Sprintf("%d guarded: %s", total, strings.Join(parts, ", "))
}

// statusExitCode answers for CI. Nothing to look at is no success: a wrong
// namespace would pass otherwise.
func statusExitCode(baselines []v1alpha1.Baseline) error {
	s := summarize(baselines)
	switch {
	case s[actions.StandingDrifted]+s[actions.StandingMissing] > 0:
		return &exitError{code: exitDifferent}
	case s[actions.StandingUnknown] > 0 || s[actions.StandingInSync] == 0:
		return &exitError{code: exitTrouble}
	default:
		return nil
	}
}
