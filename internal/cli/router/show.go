// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions/routers"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

func (a *app) showCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the capabilities of a TrafficRouter, its last refusal, and its releases",
		Long: `Show a TrafficRouter: the condition Ready, the version of the program, the best
knowledge that the router has of a split, the capabilities, the last request that
failed in the words of the program, and the releases that name the router.`,
		Example: invocation.Examples(
			"# Show one TrafficRouter", "%s router show edge",
			"# For a program", "%s router show edge -o json"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.showRouter(cmd, args, output) },
		ValidArgsFunction: a.completeRouter,
	}
	invocation.AddOutputFlag(cmd, &output, "json", "yaml")
	return cmd
}

func (a *app) showRouter(cmd *cobra.Command, args []string, output string) error {
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
	_, _, report, err := routers.ReadRouter(cmd.Context(), c, name)
	if err != nil {
		return err
	}
	if output != "" {
		return a.PrintReport(output, "RouterReport", report)
	}
	return a.Print(describeReport(report))
}

// describeReport is the report for people.
func describeReport(r *routers.Report) string {
	d := &invocation.Description{}
	d.Field("Name", r.Name)
	d.Field("Type", r.Type)
	d.Field("Version", r.Version)
	d.Field("Namespaces", describeNamespaces(r))
	if c := r.Ready(); c != nil {
		d.Field("Ready", fmt.Sprintf("%s, %s: %s", c.Status, c.Reason, c.Message))
	} else {
		d.Field("Ready", unknown)
	}
	d.Field("Knowledge", cmp.Or(r.Knowledge, unknown))
	if refusal := r.LastRefusal; refusal != nil {
		d.Field("Last refusal", wording.FormatTimestamp(refusal.RefusalTime)+": "+refusal.Message)
	}
	d.Section("Capabilities")
	for _, capability := range r.Capabilities {
		has := "no"
		if capability.Has {
			has = "yes"
		}
		d.Line(1, "%-26s%s", capability.Name, has)
	}
	d.Section("Releases")
	switch {
	case r.Unread != "":
		d.Line(1, "%s: %s", unknown, r.Unread)
	case len(r.Releases) == 0:
		d.Line(1, "<none>")
	}
	for i := range r.Releases {
		release := &r.Releases[i]
		d.Line(1, "%s/%s  split %s, knowledge %s, ready %s", release.Namespace, release.Name,
			cmp.Or(release.Split, unknown), cmp.Or(release.Knowledge, unknown), cmp.Or(release.Ready, unknown))
		if release.Acknowledged != "" {
			d.Line(2, "%s", release.Acknowledged)
		}
	}
	return d.String()
}
