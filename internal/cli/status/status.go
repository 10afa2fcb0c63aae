// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

type statusOptions struct {
	guarded.Selection
	invocation.ListOutput
	exitCode bool
	// everything shows the objects without drift as well.
	everything bool
}

// Command returns the command "status".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	o := &statusOptions{ListOutput: invocation.NewListOutput()}
	cmd := &cobra.Command{
		Use:   "status [TYPE | TYPE/NAME ...]",
		Short: "Show drifted objects, worst first",
		Long: `Show guarded objects that are not in sync, worst first: their severity, the writer,
the worst difference, its age, and the decision of the policies. --all shows the
objects in sync, the retired ones and those without a guard as well. An object that
you name is always shown.

The marks: ✗ is drifted or missing, ‼ is a contention, ? is unknown, ✓ is in sync,
and - is retired or no longer guarded. --no-headers leaves them out.

With --exit-code the answer is the exit code: 0 when every object shown is in
sync, and 1 when one drifted or is missing. It is 2 when the state is unknown (an
object that could not be read, no guarded object, or an error).`,
		Example: invocation.Examples(
			"# The drifted objects of the namespace", "%s status",
			"# All guarded objects of all namespaces, with score, authorizer and guards", "%s status -A --all -o wide",
			"# One object, or all Deployments with a label", "%s status deploy/web\n  kubectl plumbline status deploy -l app=web",
			"# Follow all of them", "%s status -A --watch",
			"# Fail a pipeline when something drifted", "%s status -n shop --exit-code"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.status(cmd.Context(), cmd, args, o)
			if _, answered := err.(*invocation.ExitError); err != nil && !answered && o.exitCode { //nolint:errorlint // our own, never wrapped
				return &invocation.ExitError{Code: invocation.ExitTrouble, Err: err}
			}
			return err
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	o.Selection.AddFlags(cmd)
	o.ListOutput.AddFlags(cmd, "Baselines")
	invocation.AddWatchFlag(cmd, &o.Watch)
	cmd.Flags().BoolVar(&o.everything, "all", false, "Show the objects in sync, the retired ones and those without a guard as well.")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "Exit with 1 when an object drifted or is missing, with 2 when that cannot be said.")
	return cmd
}

func (a *app) status(ctx context.Context, cmd *cobra.Command, args []string, o *statusOptions) error {
	if o.Watch && o.exitCode {
		return invocation.UsageErrorf(cmd, "--watch has no end, so it has no --exit-code")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	printer, err := o.Printer(cmd, c.Scheme())
	if err != nil {
		return err
	}
	show := func(to *invocation.Invocation) error {
		return (&app{Invocation: to}).showStatus(ctx, c, cmd, args, printer, o)
	}
	if !o.Watch {
		return show(a.Invocation)
	}
	options := &client.ListOptions{Namespace: c.Namespace}
	if o.AllNamespaces {
		options.Namespace = metav1.NamespaceAll
	}
	return a.ShowChanges(ctx, c, &v1alpha1.BaselineList{}, options, show)
}

// showStatus reads the Baselines that the arguments name, and prints them.
func (a *app) showStatus(ctx context.Context, c *invocation.Cluster, cmd *cobra.Command, args []string, printer *invocation.ListPrinter, o *statusOptions) error {
	found, missing := guarded.Select(ctx, c, cmd, args, o.Selection)
	if missing != nil && !found.Named {
		return missing
	}
	if err := a.printBaselines(ctx, c, printer, found, o); err != nil {
		return err
	}
	if missing != nil {
		return missing
	}
	if o.exitCode {
		return statusExitCode(found.Baselines)
	}
	return nil
}

// printBaselines prints the selected Baselines, worst first.
func (a *app) printBaselines(ctx context.Context, c *invocation.Cluster, printer *invocation.ListPrinter, found guarded.Selected, o *statusOptions) error {
	wording.SortWorstFirst(found.Baselines)
	if printer.Objects == nil {
		return a.printStatus(ctx, c, found, o, printer.Wide)
	}
	objects := make([]client.Object, len(found.Baselines))
	for i := range found.Baselines {
		objects[i] = &found.Baselines[i]
	}
	return printer.Print(a.Out, "Baseline", objects, found.Named)
}

// statusExitCode answers for CI. A selection without objects is no success: a wrong
// namespace would pass otherwise.
func statusExitCode(baselines []v1alpha1.Baseline) error {
	s := wording.Summarize(baselines)
	switch {
	case s[actions.StandingDrifted]+s[actions.StandingMissing] > 0:
		return &invocation.ExitError{Code: invocation.ExitDifferent}
	case s[actions.StandingUnknown] > 0 || s[actions.StandingInSync] == 0:
		return &invocation.ExitError{Code: invocation.ExitTrouble}
	default:
		return nil
	}
}
