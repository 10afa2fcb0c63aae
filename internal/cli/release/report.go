// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	_ "embed"
	"fmt"
	htmltemplate "html/template"
	"io"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var (
	//go:embed templates/report.html
	htmlText string
	//go:embed templates/report.md
	markdownText string
)

// The formats of a report. html/template escapes each value of the first one by its place.
var (
	htmlReport     = htmltemplate.Must(htmltemplate.New("report.html").Funcs(reportFuncs(invocation.Printable)).Parse(htmlText))
	markdownReport = template.Must(template.New("report.md").Funcs(reportFuncs(escapeMarkdown)).Parse(markdownText))
)

// reportFuncs are the functions of the templates; line makes text of others safe for one line.
func reportFuncs(line func(string) string) map[string]any {
	return map[string]any{
		"line":  line,
		"text":  func(v any) string { return fmt.Sprint(v) },
		"clock": func(d metav1.Duration) string { return progress.FormatClock(d.Duration) },
		"timestamp": func(v any) string {
			switch at := v.(type) {
			case time.Time:
				return wording.FormatTimestamp(metav1.NewTime(at))
			case metav1.Time:
				return wording.FormatTimestamp(at)
			case *metav1.Time:
				return wording.FormatTimestamp(*at)
			}
			return progress.Unknown
		},
		"rate":    func(r v1alpha1.Rate) string { return line(progress.FormatRate(r)) },
		"latency": progress.FormatLatency,
		"digits":  progress.GroupDigits,
		"health":  healthLines,
		"count":   progress.FormatCount,
		"bet": func(c *v1alpha1.HealthComparison) string {
			if c == nil {
				return progress.Unknown
			}
			return strings.Join(progress.DescribeComparison(c), ", ")
		},
		"percentage": func(p *v1alpha1.Percentage) string {
			if p == nil {
				return progress.Unknown
			}
			return line(p.String()) + " %"
		},
	}
}

// healthLines returns the bets of the judge and the counts, one line each.
func healthLines(j *progress.Judge) (lines []string) {
	if j.Errors != nil {
		lines = append(lines, "Errors: "+strings.Join(progress.DescribeComparison(j.Errors), ", "))
	}
	if j.Latency != nil {
		lines = append(lines, "Latency: "+strings.Join(append(progress.DescribeComparison(j.Latency), progress.DescribeSlow(j)), ", "))
	}
	if counts := progress.DescribeCounts(j); j.Errors != nil && counts != nil {
		lines = append(lines, "Counts: "+strings.Join(counts, ", "))
	}
	return lines
}

// escapeMarkdown escapes each character that Markdown may obey: CommonMark takes a backslash before any
// ASCII punctuation (section 2.4), and HTML needs "<" and "&" as entities.
func escapeMarkdown(text string) string {
	var b strings.Builder
	for _, r := range invocation.Printable(text) {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case strings.ContainsRune("\\`*_{}[]()#+!|~$@:^=\"'", r):
			b.WriteString("\\" + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (a *app) reportCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Write a report of the last run: stages, numbers with bounds, verdict, history",
		Long: `Write a report of the run that began last: its stages, the error rates with bounds of
95 %, the verdict of the judge, the end, and the history that the status still has.
The report is one file, without scripts and without references to other files. Without
-o it is Markdown.`,
		Example: invocation.Examples(
			"# Keep the run of web", "%s release report web -o html > web.html"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return invocation.UsageErrorf(cmd, "name one release")
			}
			if err := invocation.CheckOutput(cmd, output, "html", "markdown"); err != nil {
				return err
			}
			return a.report(cmd.Context(), args[0], output)
		},
		ValidArgsFunction: a.completeRelease,
	}
	invocation.AddOutputFlag(cmd, &output, "html", "markdown")
	return cmd
}

func (a *app) report(ctx context.Context, name, output string) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	r, err := read(ctx, c, name)
	if err != nil {
		return err
	}
	report := progress.ReportOf(r, a.ServerTime(c))
	if err := writeReport(a.Out, &report, output); err != nil {
		return fmt.Errorf("writing the report of %s: %w", releaseName(r), err)
	}
	return nil
}

func writeReport(w io.Writer, report *progress.Report, format string) error {
	if format == "html" {
		return htmlReport.Execute(w, report)
	}
	return markdownReport.Execute(w, report)
}
