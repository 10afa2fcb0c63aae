// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/difference"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

// Command returns the command "blame".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var output string
	var noHeaders bool
	cmd := &cobra.Command{
		Use:   "blame TYPE/NAME",
		Short: "Show the writer of each change, and the proof",
		Long: `Show each difference from the authorized state: its writer, the writer's class under
the guards, the proof, the first sight of it, and the value before and after. Then
show the user that authorized the object last.

KNOWN-BY, from strong to weak: WriterStamp is stored with the object by the API
server itself; Admission is the webhook's record of exactly this write;
ManagedFields is a hint that a client may choose; None means that no proof names
the writer.

A user that passes a guard of mode Deny gives a reason; it stands below the table.`,
		Example: invocation.Examples(
			"# Show the changes and their writers", "%s blame deploy/web",
			"# With field managers, drift types and whole values", "%s blame deploy/web -o wide"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.blame(cmd, args, output, noHeaders)
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml", "wide")
	invocation.AddNoHeadersFlag(cmd, &noHeaders)
	return cmd
}

// blameReport is what blame answers.
type blameReport struct {
	Object     string                      `json:"object"`
	Namespace  string                      `json:"namespace"`
	State      v1alpha1.DriftState         `json:"state"`
	Severity   *v1alpha1.Severity          `json:"severity,omitempty"`
	Authorized *difference.AuthorizedState `json:"authorized,omitempty"`
	Findings   []v1alpha1.Finding          `json:"findings"`
	Total      int                         `json:"findingsTotal"`
	Expected   []v1alpha1.Mask             `json:"expected,omitempty"`
	Contention *v1alpha1.Contention        `json:"contention,omitempty"`
}

func (a *app) blame(cmd *cobra.Command, args []string, output string, noHeaders bool) error {
	if err := invocation.CheckOutput(cmd, output, "json", "yaml", "wide"); err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	t, err := guarded.ResolveOne(c, cmd, args)
	if err != nil {
		return err
	}
	baseline, err := guarded.GetBaseline(cmd.Context(), c, t)
	if err != nil {
		return err
	}
	report := reportBlame(t, baseline)
	if invocation.IsStructured(output) {
		return a.PrintReport(output, "BlameReport", report)
	}
	return a.printBlame(baseline, report, invocation.TableOptions{Wide: output == "wide", NoHeaders: noHeaders})
}

func reportBlame(t guarded.Target, b *v1alpha1.Baseline) blameReport {
	findings := b.Status.Findings
	if findings == nil {
		findings = []v1alpha1.Finding{}
	}
	return blameReport{
		Object: t.String(), Namespace: b.Namespace, State: b.Status.State, Severity: b.Status.Severity,
		Authorized: difference.ReportAuthorized(b), Findings: findings, Total: actions.CountFindings(b),
		Expected: b.Status.Masks, Contention: b.Status.Contention,
	}
}

func (a *app) printBlame(b *v1alpha1.Baseline, r blameReport, o invocation.TableOptions) error {
	if !o.NoHeaders {
		if err := a.Print(a.blameHeader(b, r), "\n"); err != nil {
			return err
		}
	}
	columns := []invocation.Column{
		{Name: "Path"}, {Name: "Who"}, {Name: "Class"}, {Name: "Known-By"}, {Name: "When"}, {Name: "Change"},
		{Name: "Touches", Wide: true}, {Name: "Drift", Wide: true}, {Name: "Field-Manager", Wide: true},
	}
	rows := make([][]any, 0, len(r.Findings))
	for i := range r.Findings {
		f := &r.Findings[i]
		rows = append(rows, []any{
			wording.NamePath(f.Path), wording.NameActor(f.Actor.User), string(f.Actor.Class), string(f.Actor.Source), a.FormatAge(f.FirstSeenTime), wording.DescribeChange(f, o.Wide),
			string(f.Class), string(f.Type), f.Actor.FieldManager,
		})
	}
	if err := a.PrintTable(o, columns, rows); err != nil || o.NoHeaders {
		return err
	}
	return a.Print(blameFooter(r))
}

func (a *app) blameHeader(b *v1alpha1.Baseline, r blameReport) string {
	lines := []string{r.Object + ": " + wording.DescribeDrift(b, a.Now()), wording.DescribeAuthorized(b, a.Now())}
	if r.Contention != nil {
		lines = append(lines, wording.DescribeContention(r.Contention, a.Now()))
	}
	return printableLines(lines)
}

func blameFooter(r blameReport) string {
	var lines []string
	if more := r.Total - len(r.Findings); more > 0 {
		lines = append(lines, fmt.Sprintf("... and %d more findings", more))
	}
	lines = append(lines, wording.ListBreakGlass(r.Findings)...)
	for i := range r.Expected {
		lines = append(lines, wording.DescribeMask(&r.Expected[i]))
	}
	return printableLines(lines)
}

func printableLines(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(invocation.Printable(line) + "\n")
	}
	return b.String()
}
