// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"cmp"
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
		Long: `Show the user that authorized an object last, and each difference from the authorized
state: the field, its value before and after, the writer, whether the guards trust the
writer, the proof, and the time since the first sight of the difference.

PROOF, from strong to weak: "API server" is a stamp that the API server stored with the
object; "webhook" is the webhook's record of exactly this write; a field manager is a
hint that a client may choose. TRUSTED is "expected" for a writer that a rule of the
guards expects at this field, and "system" for controllers of the cluster.

-o wide adds the JSON pointer, the drift type, the class of the field, the class of the
writer, the source of the proof and the field manager, and shows names and values in full.

A user that passes a guard of mode Deny gives a reason; it stands below the table. So do
the changes that a SpecGuardException excuses, with its ticket, its author and its end.`,
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

// blameReport is the report of blame.
type blameReport struct {
	Object     string                      `json:"object"`
	Namespace  string                      `json:"namespace"`
	State      v1alpha1.DriftState         `json:"state"`
	Severity   *v1alpha1.Severity          `json:"severity,omitempty"`
	Authorized *difference.AuthorizedState `json:"authorized,omitempty"`
	Findings   []v1alpha1.Finding          `json:"findings"`
	Total      int                         `json:"findingsTotal"`
	Expected   []v1alpha1.Mask             `json:"expected,omitempty"`
	Exceptions []exception                 `json:"exceptions,omitempty"`
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
	if report.Exceptions, err = findExceptions(cmd.Context(), c, baseline.Namespace, report.Expected); err != nil {
		return err
	}
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
	rows := make([][]any, 0, len(r.Findings))
	for i := range r.Findings {
		rows = append(rows, a.formatRow(&r.Findings[i], o.Wide))
	}
	if err := a.PrintTable(o, columns, rows); err != nil || o.NoHeaders {
		return err
	}
	return a.Print(blameFooter(r))
}

// columns are those of the table of differences.
var columns = []invocation.Column{
	{Name: "Field"}, {Name: "Before"}, {Name: "After"}, {Name: "Who"}, {Name: "Trusted"}, {Name: "Proof"}, {Name: "When"},
	{Name: "Path", Wide: true}, {Name: "Drift", Wide: true}, {Name: "Touches", Wide: true}, {Name: "Class", Wide: true}, {Name: "Known-By", Wide: true}, {Name: "Field-Manager", Wide: true},
}

// exists stands for the object itself where a field has a value.
const exists = "exists"

// formatRow gives the cells of a finding.
func (a *app) formatRow(f *v1alpha1.Finding, wide bool) []any {
	before, after, who := "<none>", "<none>", wording.NameWriter(f.Actor.User)
	if f.Operation != v1alpha1.OperationAdded {
		before = wording.FormatValue(f.Before, wording.ValueWidth, wide)
	}
	if f.Operation != v1alpha1.OperationRemoved {
		after = wording.FormatValue(f.After, wording.ValueWidth, wide)
	}
	if f.Path == "" { // a finding about the object as a whole has no values
		before, after = cmp.Or(before, exists), cmp.Or(after, exists)
	}
	if wide {
		who = wording.NameActor(f.Actor.User)
	}
	return []any{
		wording.NameField(f.Path), before, after, who, wording.DescribeTrust(f.Actor.Class), wording.DescribeProof(f.Actor.Source), a.FormatAge(f.FirstSeenTime),
		wording.NamePath(f.Path), string(f.Type), string(f.Class), string(f.Actor.Class), string(f.Actor.Source), f.Actor.FieldManager,
	}
}

func (a *app) blameHeader(b *v1alpha1.Baseline, r blameReport) string {
	lines := []string{r.Object + "  " + wording.DescribeDrift(b, a.Now()), wording.DescribeAuthorized(b, a.Now())}
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
	for _, e := range r.Exceptions {
		lines = append(lines, e.describe())
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
