// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/internal/doctor/gather"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

type doctorOptions struct {
	system         string
	probeNamespace string
	probe          bool
	failOn         string
	skip           []string
	output         string
	// snapshot reads the cluster.
	snapshot func(context.Context, *doctorOptions) (*doctor.Snapshot, error)
}

// failOnValues are the values of --fail-on.
var failOnValues = map[string]doctor.Severity{"critical": doctor.Critical, "warning": doctor.Warning}

// Command returns the command "doctor".
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	return a.doctorCommandOn(a.gatherSnapshot)
}

func (a *app) doctorCommandOn(snapshot func(context.Context, *doctorOptions) (*doctor.Snapshot, error)) *cobra.Command {
	o := &doctorOptions{snapshot: snapshot}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and its surroundings for problems",
		Long: `Check the installation of Plumbline, and its surroundings for problems that could
break it or block the cluster. Each finding has a fix.

It reads as your user: a check of objects that you may not read is Unknown, never
OK, and names the missing permission. Up to nine writes are tried as dry runs, since
only admission can show that admission works; no object is stored. --probe=false
leaves them out. The command finds the installation by itself, or
by --system-namespace.

Exit status: 0 no finding at or above --fail-on. 1 a finding at or above it.
2 unknown: a check of that severity had no answer, or
the command failed. --skip leaves checks out by name.`,
		Example: invocation.Examples(
			"# Examine everything", "%s doctor",
			"# Fail a pipeline on warnings too, as a program reads it", "%s doctor --fail-on=warning -o json",
			"# Leave out the objects that your user may not read", "%s doctor --skip webhook.certificate,details.redis"),
		Annotations: map[string]string{invocation.TroubleAnnotation: "doctor"},
		Args:        invocation.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd, o) },
	}
	invocation.AddOutputFlag(cmd, &o.output, "json", "yaml")
	invocation.AddSystemFlag(cmd, &o.system)
	flags := cmd.Flags()
	flags.StringVar(&o.failOn, "fail-on", "critical", "Exit with 1 on findings of this severity or worse: critical or warning.")
	flags.BoolVar(&o.probe, "probe", true, "Try writes as dry runs.")
	flags.StringVar(&o.probeNamespace, "probe-namespace", "", "Namespace in which the write is tried; by default one that a guard covers, else default.")
	flags.StringSliceVar(&o.skip, "skip", nil, "Checks to leave out, by name.")
	invocation.CompleteValues(cmd, "fail-on", "critical", "warning")
	invocation.CompleteValues(cmd, "skip", checkIDs()...)
	return cmd
}

func checkIDs() []string {
	var ids []string
	for _, check := range doctor.Checks() {
		ids = append(ids, check.ID)
	}
	return ids
}

func (a *app) doctor(cmd *cobra.Command, o *doctorOptions) error {
	if err := invocation.CheckOutput(cmd, o.output, "json", "yaml"); err != nil {
		return err
	}
	failOn, known := failOnValues[strings.ToLower(o.failOn)]
	if !known {
		return invocation.UsageErrorf(cmd, "invalid --fail-on %q, want critical or warning", o.failOn)
	}
	for _, id := range o.skip {
		if !slices.Contains(checkIDs(), id) {
			return invocation.UsageErrorf(cmd, "there is no check %q to skip", id)
		}
	}
	snapshot, err := o.snapshot(cmd.Context(), o)
	if err != nil {
		return err
	}
	report := doctor.Examine(snapshot, o.skip...)
	if o.output != "" {
		err = a.PrintReport(o.output, "DoctorReport", report)
	} else {
		err = a.Print(a.Paint(doctorText(&report)))
	}
	if err != nil {
		return err
	}
	return decide(&report, failOn)
}

func decide(report *doctor.Report, failOn doctor.Severity) error {
	switch report.Decide(failOn) {
	case doctor.Passed:
		return nil
	case doctor.Failed:
		return &invocation.ExitError{Code: invocation.ExitDifferent}
	case doctor.Undecided:
		fallthrough
	default: // an unknown answer passes no check
		return &invocation.ExitError{Code: invocation.ExitTrouble, Err: fmt.Errorf("no finding, but these checks had no answer: %s", strings.Join(report.Unanswered(failOn), ", "))}
	}
}

// gatherSnapshot asks the cluster that the flags and the kubeconfig name.
func (a *app) gatherSnapshot(ctx context.Context, o *doctorOptions) (*doctor.Snapshot, error) {
	config, err := a.ConfigFlags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = invocation.ClientQPS, invocation.ClientBurst
	options := gather.Options{ProbeNamespace: o.probeNamespace, NoProbes: !o.probe, ClientVersion: a.Version, Now: a.Now}
	options.Namespace = o.system
	if a.ConfigFlags.Namespace != nil { // the flag alone: the context's namespace is where the user works
		options.Namespace = cmp.Or(o.system, *a.ConfigFlags.Namespace)
	}
	return gather.Snapshot(ctx, config, options)
}
