// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func (a *app) blameCommand() *cobra.Command {
	var output string
	var noHeaders bool
	cmd := &cobra.Command{
		Use:   "blame TYPE/NAME",
		Short: "Show who made each change, and how that is known",
		Long: `Show, for each difference from the authorized state, who made it, how that writer
stands to the guards, how the writer is known, when it was first seen, and the
value before and after; then who authorized the object last.

KNOWN-BY, from strong to weak: WriterStamp is stored with the object by the API
server itself; Admission is the webhook's record of exactly this write;
ManagedFields is a hint that a client may choose; None means that nothing names
the writer.

Whoever went past a guard that denies gave a reason; it stands below the table.`,
		Example: examples(
			"# Who changed what", "%s blame deploy/web",
			"# With field managers, drift types and whole values", "%s blame deploy/web -o wide"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.blame(cmd, args, output, noHeaders)
		},
		ValidArgsFunction: a.completeObject(),
	}
	addOutputFlag(cmd, &output, "json", "yaml", "wide")
	addNoHeadersFlag(cmd, &noHeaders)
	return cmd
}

// blameReport is what blame answers.
type blameReport struct {
	Object     string               `json:"object"`
	Namespace  string               `json:"namespace"`
	State      v1alpha1.DriftState  `json:"state"`
	Severity   *v1alpha1.Severity   `json:"severity,omitempty"`
	Authorized *authorizedReport    `json:"authorized,omitempty"`
	Findings   []v1alpha1.Finding   `json:"findings"`
	Total      int                  `json:"findingsTotal"`
	Expected   []v1alpha1.Mask      `json:"expected,omitempty"`
	Contention *v1alpha1.Contention `json:"contention,omitempty"`
}

func (a *app) blame(cmd *cobra.Command, args []string, output string, noHeaders bool) error {
	if err := checkOutput(cmd, output, "json", "yaml", "wide"); err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	t, err := c.oneTarget(cmd, args)
	if err != nil {
		return err
	}
	baseline, err := c.baseline(cmd.Context(), t)
	if err != nil {
		return err
	}
	report := reportBlame(t, baseline)
	if output == "json" || output == "yaml" {
		return a.printStructured(output, report)
	}
	return a.printBlame(baseline, report, tableOptions{wide: output == "wide", noHeaders: noHeaders})
}

func reportBlame(t target, b *v1alpha1.Baseline) blameReport {
	findings := b.Status.Findings
	if findings == nil {
		findings = []v1alpha1.Finding{}
	}
	return blameReport{
		Object: t.String(), Namespace: b.Namespace, State: b.Status.State, Severity: b.Status.Severity,
		Authorized: reportAuthorized(b), Findings: findings, Total: actions.CountFindings(b),
		Expected: b.Status.Masks, Contention: b.Status.Contention,
	}
}

func (a *app) printBlame(b *v1alpha1.Baseline, r blameReport, o tableOptions) error {
	if !o.noHeaders {
		if err := a.print(a.blameHeader(b, r), "\n"); err != nil {
			return err
		}
	}
	columns := []column{
		{name: "Path"}, {name: "Who"}, {name: "Class"}, {name: "Known-By"}, {name: "When"}, {name: "Change"},
		{name: "Touches", wide: true}, {name: "Drift", wide: true}, {name: "Field-Manager", wide: true},
	}
	rows := make([][]any, 0, len(r.Findings))
	for i := range r.Findings {
		f := &r.Findings[i]
		rows = append(rows, []any{
			pathName(f.Path), actorName(f.Actor.User), string(f.Actor.Class), string(f.Actor.Source), a.age(f.FirstSeenTime), changeWords(f, o.wide),
			string(f.Class), string(f.Type), f.Actor.FieldManager,
		})
	}
	if err := a.printTable(o, columns, rows); err != nil || o.noHeaders {
		return err
	}
	return a.print(blameFooter(r))
}

func (a *app) blameHeader(b *v1alpha1.Baseline, r blameReport) string {
	head := r.Object + ": " + stateWords(b)
	if r.Severity != nil {
		head += fmt.Sprintf(", %s (%d)", r.Severity.Level, r.Severity.Score)
	}
	if b.Status.FirstSeenTime != nil && actions.StandingOf(b) != actions.StandingInSync {
		head += ", since " + a.age(*b.Status.FirstSeenTime)
	}
	last := "Never authorized: nobody trusted has created it"
	if r.Authorized != nil {
		last = fmt.Sprintf("Last authorized by %s %s (revision %d, %s)", actorName(r.Authorized.By), a.ago(r.Authorized.At), r.Authorized.Revision, r.Authorized.Origin)
	}
	lines := []string{head, last}
	if r.Contention != nil {
		lines = append(lines, fmt.Sprintf("Contended since %s by %s", a.age(r.Contention.StartTime), strings.Join(r.Contention.With, ", ")))
	}
	return printableLines(lines)
}

func blameFooter(r blameReport) string {
	var lines []string
	if more := r.Total - len(r.Findings); more > 0 {
		lines = append(lines, fmt.Sprintf("... and %d more findings", more))
	}
	lines = append(lines, breakGlassLines(r.Findings)...)
	for i := range r.Expected {
		mask := &r.Expected[i]
		lines = append(lines, fmt.Sprintf("Expected: %s by %s (rule %s)", mask.Path, actorName(mask.Actor.User), mask.Rule))
	}
	return printableLines(lines)
}

// breakGlassLines tell who went past a guard that denies, and why; once per write,
// as one write may change many paths.
func breakGlassLines(findings []v1alpha1.Finding) []string {
	var lines []string
	for i := range findings {
		actor := &findings[i].Actor
		if actor.BreakGlassReason == "" {
			continue
		}
		line := fmt.Sprintf("Break-glass: %s, reason: %s", actorName(actor.User), actor.BreakGlassReason)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

func printableLines(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(printable(line) + "\n")
	}
	return b.String()
}

// valueWidth is how much of a value a table cell shows without -o wide.
const valueWidth = 40

func changeWords(f *v1alpha1.Finding, wide bool) string {
	limit := valueWidth
	if wide {
		limit = 2 * 1024 // the longest a finding holds, and more
	}
	before, after := short(f.Before, limit), short(f.After, limit)
	switch f.Operation {
	case v1alpha1.OperationAdded:
		return "+ " + after
	case v1alpha1.OperationRemoved:
		return "- " + before
	case v1alpha1.OperationChanged:
		return before + " → " + after
	default:
		return string(f.Operation) + ": " + before + " → " + after
	}
}
