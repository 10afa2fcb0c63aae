// SPDX-License-Identifier: Apache-2.0

package router

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions/routers"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

func (a *app) checkCommand() *cobra.Command {
	var output, system string
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Check whether splits can become effective at a TrafficRouter",
		Long: `Look at a TrafficRouter and at the objects that it depends on: its conditions, the
last request to its program, the namespaces of the releases that name it, the
permissions of the discovery server, and the GitOps tools that apply the routes of
these releases. If Argo CD or Flux would undo the weights, the command prints the rule
that has the tool ignore these.

It reads as your user: objects that you may not read are unknown ("?"). The
discovery server alone reaches the program, so the status tells of requests.

Exit status: 0 no problem. 1 a problem. 2 unknown: a check had no answer, or the
command failed.`,
		Example: invocation.Examples(
			"# Check one TrafficRouter", "%s router check edge",
			"# For a program", "%s router check edge -o json"),
		Annotations:       map[string]string{invocation.TroubleAnnotation: "router check"},
		RunE:              func(cmd *cobra.Command, args []string) error { return a.checkRouter(cmd, args, output, system) },
		ValidArgsFunction: a.completeRouter,
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml")
	invocation.AddSystemFlag(cmd, &system)
	return cmd
}

func (a *app) checkRouter(cmd *cobra.Command, args []string, output, system string) error {
	if err := invocation.CheckOutput(cmd, output, "json", "yaml"); err != nil {
		return err
	}
	name, err := invocation.OneArgument(cmd, args, "TrafficRouter")
	if err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	if system, err = c.FindSystemNamespace(cmd.Context(), system); err != nil {
		return err
	}
	findings, err := routers.CheckRouter(cmd.Context(), c, name, system)
	if err != nil {
		return err
	}
	if output != "" {
		err = a.PrintReport(output, "RouterCheck", findings)
	} else {
		err = a.Print(a.Paint(describeFindings(findings)))
	}
	if err != nil {
		return err
	}
	switch {
	case findings.Has(routers.Problem):
		return &invocation.ExitError{Code: invocation.ExitDifferent}
	case findings.Has(routers.Unknown):
		return &invocation.ExitError{Code: invocation.ExitTrouble}
	}
	return nil
}

// marks of the states.
var marks = map[routers.State]string{routers.OK: "✓", routers.Problem: "✗", routers.Unknown: "?"}

// describeFindings is the result for people.
func describeFindings(f *routers.Findings) string {
	d := &invocation.Description{}
	d.Line(0, "TrafficRouter %s, type %s", f.Name, f.Type)
	for i := range f.Findings {
		finding := &f.Findings[i]
		d.Line(1, "%s %-12s %s", marks[finding.State], finding.Check, finding.Message)
		label := "fix:"
		for line := range strings.Lines(finding.Fix) {
			d.Line(7, "%-4s %s", label, strings.TrimRight(line, "\n"))
			label = ""
		}
	}
	return d.String()
}
