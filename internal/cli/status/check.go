// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

type checkOptions struct {
	statusOptions
	all  bool
	wait invocation.Wait
}

// CheckCommand returns the command "check".
func CheckCommand(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	o := &checkOptions{statusOptions: statusOptions{ListOutput: invocation.NewListOutput()}}
	cmd := &cobra.Command{
		Use:   "check (TYPE/NAME ... | [TYPE] --all | -l SELECTOR)",
		Short: "Have objects checked now, and show their state",
		Long: `Ask the assessor to read objects and compare them with their authorized state now,
regardless of their resync period. Wait for it, and show their state as status
does. The request is an annotation on the Baseline; the object is not
touched.

--exit-code answers as that of status.`,
		Example: invocation.Examples(
			"# Is it as authorized, now", "%s check deploy/web",
			"# Check everything in the namespace, for a pipeline", "%s check --all --exit-code"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.check(cmd, args, o)
			if _, answered := err.(*invocation.ExitError); err != nil && !answered && o.exitCode { //nolint:errorlint // our own, never wrapped
				return &invocation.ExitError{Code: invocation.ExitTrouble, Err: err}
			}
			return err
		},
		ValidArgsFunction: guarded.CompleteObject(a.Invocation),
	}
	o.Selection.AddFlags(cmd)
	o.ListOutput.AddFlags(cmd, "Baselines")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "Exit with 1 when an object drifted or is missing, with 2 when that cannot be said.")
	cmd.Flags().BoolVar(&o.all, "all", false, "Check all guarded objects of the namespace, or of TYPE in it.")
	o.wait.AddFlags(cmd, "the assessor has checked")
	return cmd
}

func (o *checkOptions) validate(cmd *cobra.Command, args []string) error {
	named := guarded.CountNames(args) > 0
	switch {
	case !named && !o.all && o.Labels == "":
		return invocation.UsageErrorf(cmd, "name objects as TYPE/NAME, or select them with --all or -l")
	case named && o.all:
		return invocation.UsageErrorf(cmd, "--all selects in bulk and excludes TYPE/NAME")
	}
	return o.wait.Check(cmd)
}

func (a *app) check(cmd *cobra.Command, args []string, o *checkOptions) error {
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	printer, err := o.Printer(cmd, c.Scheme())
	if err != nil {
		return err
	}
	found, missing := guarded.Select(cmd.Context(), c, cmd, args, o.Selection)
	if missing != nil && !found.Named {
		return missing
	}
	checked, failed := a.checkAll(cmd.Context(), c, found.Baselines, o.wait.Timeout())
	failed = errors.Join(missing, failed)
	if len(checked) > 0 || failed == nil && len(found.Baselines) == 0 {
		if err := a.printBaselines(cmd.Context(), c, printer, guarded.Selected{Baselines: checked, Named: found.Named}, &o.statusOptions); err != nil {
			return err
		}
	}
	if failed == nil && o.exitCode {
		return statusExitCode(checked)
	}
	return failed
}

// checkAll asks for every check before it waits for any. It gives the Baselines as
// they are after their check.
func (a *app) checkAll(ctx context.Context, c *invocation.Cluster, baselines []v1alpha1.Baseline, patience time.Duration) ([]v1alpha1.Baseline, error) {
	value := actions.NewCheckValue(a.Now())
	var failed []error
	var asked, checked []v1alpha1.Baseline
	for i := range baselines {
		b := &baselines[i]
		if !actions.IsCheckable(b) {
			checked = append(checked, *b)
			continue
		}
		if err := actions.RequestCheck(ctx, c, b, value); err != nil {
			failed = append(failed, fmt.Errorf("%s was not checked: %w", wording.QualifiedName(b), err))
			continue
		}
		asked = append(asked, *b)
	}
	if patience == 0 {
		for i := range asked {
			failed = append(failed, guarded.PrintResult(a.Invocation, &asked[i], "check requested"))
		}
		return nil, errors.Join(failed...)
	}
	done, err := awaitChecks(ctx, c, asked, value, patience)
	return append(checked, done...), errors.Join(append(failed, err)...)
}

// awaitChecks waits for all checks under one deadline.
func awaitChecks(ctx context.Context, c *invocation.Cluster, asked []v1alpha1.Baseline, value string, patience time.Duration) ([]v1alpha1.Baseline, error) {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var checked []v1alpha1.Baseline
	var failed []error
	for i := range asked {
		progress, after, err := actions.AwaitCheck(deadline, c, &asked[i], value)
		if progress == actions.Taken {
			checked = append(checked, *after)
		}
		switch {
		case ctx.Err() != nil:
			return checked, errors.Join(append(failed, ctx.Err())...)
		case progress == actions.Refused:
			failed = append(failed, fmt.Errorf("%s: its Baseline was removed meanwhile", wording.QualifiedName(&asked[i])))
		case progress == actions.Taken:
		case deadline.Err() != nil:
			failed = append(failed, fmt.Errorf("%s: a check is requested, and the assessor has not answered within %s", wording.QualifiedName(&asked[i]), patience))
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: a check is requested; waiting for it: %w", wording.QualifiedName(&asked[i]), err))
		}
	}
	return checked, errors.Join(failed...)
}
