// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// app carries out the commands of this package with an invocation.
type app struct {
	*invocation.Invocation
	// pause waits before a watch is taken up again.
	pause actions.Pause
}

// Command returns the group "release" with its verbs.
func Command(inv *invocation.Invocation) *cobra.Command {
	return (&app{Invocation: inv, pause: actions.BackOff}).command()
}

func (a *app) command() *cobra.Command {
	commands := []*cobra.Command{a.listCommand(), a.getCommand(), a.watchCommand(), a.whyCommand(), a.reportCommand(), a.lintCommand(), a.setCommand()}
	for _, v := range verbs {
		commands = append(commands, a.verbCommand(v))
	}
	commands = append(commands, a.pauseCommand("pause", v1alpha1.Enabled), a.pauseCommand("resume", v1alpha1.Disabled))
	return invocation.NewGroup("release", "Show releases, set their splits, and approve, pause, promote or roll back their rollouts",
		`Show how far the rollouts of ABReleases are, and ask the discovery server to go on,
to go back, or to wait.

A request stands in the spec of the release with your name, and names the run and the
stage that you saw. The discovery server answers in the status.`, commands...)
}

type listOptions struct {
	invocation.ListOutput
	allNamespaces bool
}

func (a *app) listCommand() *cobra.Command {
	o := &listOptions{ListOutput: invocation.NewListOutput()}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List releases: their stage, their verdict, and the reasons of their waits",
		Long: `List the ABReleases of the namespace: the effective split, the stage of the run, the
verdict of the judge, and the reason of the wait.`,
		Example: invocation.Examples(
			"# The releases of the namespace", "%s release list",
			"# All releases", "%s release list -A",
			"# Follow all releases", "%s release list -A --watch"),
		Args: invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd, o) },
	}
	o.AddFlags(cmd, "ABReleases")
	invocation.AddWatchFlag(cmd, &o.Watch)
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "If present, across all namespaces. The namespace in the current context is ignored even if given with --namespace.")
	return cmd
}

func (a *app) list(cmd *cobra.Command, o *listOptions) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	printer, err := o.Printer(cmd, c.Scheme())
	if err != nil {
		return err
	}
	namespace := c.Namespace
	if o.allNamespaces {
		namespace = metav1.NamespaceAll
	}
	options := &client.ListOptions{Namespace: namespace}
	show := func(to *invocation.Invocation) error {
		return (&app{Invocation: to}).showReleases(cmd.Context(), c, options, printer, o)
	}
	if o.Watch {
		return a.ShowChanges(cmd.Context(), c, &v1alpha1.ABReleaseList{}, options, show)
	}
	return show(a.Invocation)
}

// showReleases reads the releases of a namespace, and prints them.
func (a *app) showReleases(ctx context.Context, c *invocation.Cluster, options *client.ListOptions, printer *invocation.ListPrinter, o *listOptions) error {
	all := &v1alpha1.ABReleaseList{}
	if err := c.List(ctx, all, options); err != nil {
		return err
	}
	slices.SortFunc(all.Items, func(x, y v1alpha1.ABRelease) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	if printer.Objects != nil {
		objects := make([]client.Object, len(all.Items))
		for i := range all.Items {
			objects[i] = &all.Items[i]
		}
		return printer.Print(a.Out, "ABRelease", objects, false)
	}
	return a.printReleases(all.Items, options.Namespace, o, printer.Wide)
}

func (a *app) printReleases(releases []v1alpha1.ABRelease, namespace string, o *listOptions, wide bool) error {
	if len(releases) == 0 {
		where := fmt.Sprintf(" in %s namespace", namespace)
		if namespace == metav1.NamespaceAll {
			where = ""
		}
		_, err := fmt.Fprintf(a.ErrOut, "No releases found%s.\n", where)
		return err
	}
	columns := []invocation.Column{
		{Name: "Name"}, {Name: "Service"}, {Name: "Split"}, {Name: "State"}, {Name: "Stage"}, {Name: "Verdict"}, {Name: "Waiting-For"}, {Name: "Age"},
		{Name: "Run", Wide: true}, {Name: "To", Wide: true}, {Name: "Message", Wide: true},
	}
	if o.allNamespaces {
		columns = append([]invocation.Column{{Name: "Namespace"}}, columns...)
	}
	rows := make([][]any, 0, len(releases))
	for i := range releases {
		row := a.row(&releases[i])
		if o.allNamespaces {
			row = append([]any{releases[i].Namespace}, row...)
		}
		rows = append(rows, row)
	}
	if err := a.PrintTable(invocation.TableOptions{Wide: wide, NoHeaders: o.NoHeaders}, columns, rows); err != nil || o.NoHeaders {
		return err
	}
	return a.Print("\n", plural.Of(len(releases), "release"), "\n")
}

func (a *app) row(r *v1alpha1.ABRelease) []any {
	state, stage, verdict, waits, run, to, message := "", "", "", "", "", "", ""
	if in := r.Status.Rollout; in != nil && in.Run != nil {
		state, run, to = string(in.Run.State), fmt.Sprint(in.Run.Number), cmp.Or(in.Run.To.Image, in.Run.To.Hash)
		stage = describeStage(in)
		if in.Analysis != nil && in.Stage > 0 {
			verdict = string(in.Analysis.Verdict)
		}
		message = in.Run.Message
		if in.Waiting != nil {
			waits, message = in.Waiting.Reason, in.Waiting.Message
		}
	}
	return []any{r.Name, r.Spec.ServiceName, r.Status.Split, state, stage, verdict, waits, a.FormatAge(r.CreationTimestamp), run, to, message}
}

// describeStage is "2/4 (25 %)" of a run under way.
func describeStage(in *v1alpha1.RolloutStatus) string {
	if in.Stage < 1 || int(in.Stage) > len(in.Run.Stages) {
		return ""
	}
	return fmt.Sprintf("%d/%d (%s %%)", in.Stage, len(in.Run.Stages), in.Run.Stages[in.Stage-1].TrafficPercentage.String())
}
