// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

func (a *app) whyCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Say why a run is where it is, and what comes next",
		Long: `Say why the run of a release is where it is: the conditions in the order in which they
are decided, each with its value, and what comes next; of a run that has ended why it
ended, and whether its revision is rejected.`,
		Example: invocation.Examples("# Why does the rollout of web not go on", "%s release why web"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return invocation.UsageErrorf(cmd, "name one release")
			}
			if err := invocation.CheckOutput(cmd, output, "json", "yaml"); err != nil {
				return err
			}
			return a.why(cmd.Context(), args[0], output)
		},
		ValidArgsFunction: a.completeRelease,
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml")
	return cmd
}

func (a *app) why(ctx context.Context, name, output string) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	r, err := read(ctx, c, name)
	if err != nil {
		return err
	}
	e := progress.Explain(r, a.ServerTime(c))
	if output != "" {
		return a.PrintStructured(output, e)
	}
	var d invocation.Description
	d.Line(0, "%s", e.Headline)
	width := len("rejected")
	for _, check := range e.Checks {
		width = max(width, len(check.Name))
	}
	for _, check := range e.Checks {
		d.Line(1, "%s %-*s  %s", checkMark(check.State), width, check.Name, check.Message)
	}
	if e.Because != "" {
		d.Line(1, "  %-*s  %s", width, "because", e.Because)
	}
	if e.Rejected != "" {
		d.Line(1, "  %-*s  %s: no run takes it up until a person asks: kubectl plumbline release retry %s -n %s", width, "rejected", e.Rejected, r.Name, r.Namespace)
	}
	if e.Next != "" {
		d.Line(1, "  %-*s  %s", width, "then", e.Next)
	}
	return a.Print(d.String())
}

func checkMark(state progress.CheckState) string {
	switch state {
	case progress.CheckPassed:
		return "✓"
	case progress.CheckHolding:
		return "▶"
	case progress.CheckFailed:
		return "✗"
	case progress.CheckUnknown:
		return "?"
	}
	return "?"
}
