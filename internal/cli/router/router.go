// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/routers"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

// Command returns the group "router" with its verbs.
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	return invocation.NewGroup("router", "Show TrafficRouters, and check whether splits can become effective there",
		`Show the TrafficRouters, which carry out splits beside or instead of the proxies of the
mesh, and check the conditions that a split needs there.`,
		a.listCommand(), a.showCommand(), a.checkCommand())
}

func (a *app) listCommand() *cobra.Command {
	o := invocation.NewListOutput()
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List TrafficRouters: their type, their knowledge, and the releases that name them",
		Long: `List the TrafficRouters of the cluster: the type, the best knowledge that the router
has of a split, the number of releases that name it, and the condition Ready.`,
		Example: invocation.Examples(
			"# All TrafficRouters", "%s router list",
			"# With capabilities, namespaces and the version of the program", "%s router list -o wide"),
		Args: invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listRouters(cmd, &o) },
	}
	o.AddFlags(cmd, "TrafficRouters")
	return cmd
}

func (a *app) listRouters(cmd *cobra.Command, o *invocation.ListOutput) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	printer, err := o.Printer(cmd, c.Scheme())
	if err != nil {
		return err
	}
	all := &v1alpha1.TrafficRouterList{}
	if err := c.List(cmd.Context(), all); err != nil {
		return err
	}
	slices.SortFunc(all.Items, func(x, y v1alpha1.TrafficRouter) int { return cmp.Compare(x.Name, y.Name) })
	if printer.Objects != nil {
		objects := make([]client.Object, len(all.Items))
		for i := range all.Items {
			objects[i] = &all.Items[i]
		}
		return printer.Print(a.Out, "TrafficRouter", objects, false)
	}
	if len(all.Items) == 0 {
		_, err := fmt.Fprintln(a.ErrOut, "No routers found.")
		return err
	}
	releases, unread, err := routers.ListReleases(cmd.Context(), c)
	if err != nil {
		return err
	}
	if unread != "" {
		a.Warn("the number of releases is unknown: %s", unread)
	}
	return a.printRouters(all.Items, releases, unread == "", invocation.TableOptions{Wide: printer.Wide, NoHeaders: o.NoHeaders})
}

func (a *app) printRouters(all []v1alpha1.TrafficRouter, releases []v1alpha1.ABRelease, counted bool, o invocation.TableOptions) error {
	columns := []invocation.Column{
		{Name: "Name"}, {Name: "Type"}, {Name: "Knowledge"}, {Name: "Releases"}, {Name: "Ready"}, {Name: "Reason"}, {Name: "Age"},
		{Name: "Version", Wide: true}, {Name: "Namespaces", Wide: true}, {Name: "Capabilities", Wide: true},
	}
	rows := make([][]any, 0, len(all))
	ready := 0
	for i := range all {
		report := routers.DescribeRouter(&all[i], releases)
		row := []any{report.Name, report.Type, cmp.Or(report.Knowledge, unknown), unknown, unknown, "", a.FormatAge(all[i].CreationTimestamp), report.Version, describeNamespaces(report), strings.Join(all[i].Status.Capabilities, ",")}
		if counted {
			row[3] = fmt.Sprint(len(report.Releases))
		}
		if c := report.Ready(); c != nil {
			row[4], row[5] = string(c.Status), c.Reason
			if c.Status == "True" {
				ready++
			}
		}
		rows = append(rows, row)
	}
	if err := a.PrintTable(o, columns, rows); err != nil || o.NoHeaders {
		return err
	}
	return a.Print("\n", fmt.Sprintf("%s: %d ready", plural.Of(len(all), "router"), ready), "\n")
}

// unknown stands for a value that the discovery server or the user has not read.
const unknown = "<unknown>"

func describeNamespaces(r *routers.Report) string { return cmp.Or(r.Namespaces, "<none>") }

// completeRouter completes the names of TrafficRouters.
func (a *app) completeRouter(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list := &v1alpha1.TrafficRouterList{}
	return a.CompleteFrom(cmd, list, typed, func() []cobra.Completion {
		var names []cobra.Completion
		for i := range list.Items {
			names = append(names, cobra.CompletionWithDesc(list.Items[i].Name, string(list.Items[i].Spec.Type)))
		}
		return names
	})
}
