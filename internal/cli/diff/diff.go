// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions/difference"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

// Command returns the command "diff".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	var output string
	cmd := &cobra.Command{
		Use:   "diff TYPE/NAME",
		Short: "Show the differences between the authorized and the live object",
		Long: `Show, path by path, the differences between the authorized state of an object and
the live object. Fields that the guards ignore are left out; fields that an
expected writer moved are named at the end and do not count. Values that look
like secrets are replaced by their rough length.

Exit status: 0 no differences were found. 1 differences were found.
>1 the command failed.`,
		Example: invocation.Examples(
			"# Show the changes of one object", "%s diff deploy/web",
			"# For a program", "%s diff deploy/web -o json"),
		Annotations: map[string]string{invocation.TroubleAnnotation: "diff"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.diff(cmd, args, output)
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml")
	return cmd
}

func (a *app) diff(cmd *cobra.Command, args []string, output string) error {
	if err := invocation.CheckOutput(cmd, output, "json", "yaml"); err != nil {
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
	report, err := difference.Compare(cmd.Context(), difference.Cluster{Reader: c, Mapper: c.Mapper, Live: c.Live, Now: a.Now}, baseline)
	if err != nil {
		return err
	}
	for _, unread := range report.Unread {
		a.Warn("%s", unread)
	}
	if output != "" {
		err = a.PrintReport(output, "DiffReport", report)
	} else {
		err = a.Print(a.renderDiff(report))
	}
	if err == nil && report.Different {
		err = &invocation.ExitError{Code: invocation.ExitDifferent}
	}
	return err
}
