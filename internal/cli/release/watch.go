// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

type watchOptions struct {
	until   string
	run     int64
	timeout time.Duration
}

func (a *app) watchCommand() *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Follow a run until it has come to a point",
		Long: `Follow a run. On a terminal the release is drawn anew with each change; elsewhere
there is one line for each event of the run and for each wait.

With --until the command ends once the run is Completed, RolledBack or either (Ended),
once a stage has begun (Stage=2), or once the run waits for a reason (Waiting=Approval).
The run is the one that is on, or else the next one; --run names another one.

The exit code is 0 when that is so, 1 when the run can not come to it any more, and 2
when it has not come to it within --timeout, or anything else is wrong.`,
		Example: invocation.Examples(
			"# Follow the run of web", "%s release watch web",
			"# In a pipeline, after a deployment: fail unless the run is completed", "%s release watch web --until Completed --timeout 1h"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return invocation.UsageErrorf(cmd, "name one release")
			}
			return a.watch(cmd, args[0], o)
		},
		ValidArgsFunction: a.completeRelease,
		Annotations:       map[string]string{invocation.TroubleAnnotation: "true"},
	}
	cmd.Flags().StringVar(&o.until, "until", "", "End once the run is so: Completed, RolledBack, Ended, Stage=N or Waiting=REASON.")
	cmd.Flags().Int64Var(&o.run, "run", 0, "Number of the run; left out, the run that is on, or else the next one.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "How long to wait for --until; 0s: without an end.")
	_ = cmd.RegisterFlagCompletionFunc("until", cobra.FixedCompletions([]string{"Completed", "RolledBack", "Ended", "Stage=", "Waiting=Approval"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) watch(cmd *cobra.Command, name string, o watchOptions) error {
	goal, err := actions.ParseReleaseGoal(o.until)
	switch {
	case err != nil:
		return invocation.UsageErrorf(cmd, "--until: %v", err)
	case o.run < 0 || o.timeout < 0:
		return invocation.UsageErrorf(cmd, "--run and --timeout are not negative")
	}
	goal.Run = o.run
	c, err := a.Connect()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	r, err := read(ctx, c, name)
	if err != nil {
		return err
	}
	limited := ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	f := &follower{app: a, cluster: c, goal: goal.For(r), draws: printers.IsTerminal(a.Out)}
	err = actions.Await(limited, c, r, &v1alpha1.ABReleaseList{}, f.see)
	switch {
	case errors.Join(err, f.err) != nil:
		return errors.Join(err, f.err)
	case f.missed != "":
		return &invocation.ExitError{Code: invocation.ExitDifferent, Err: fmt.Errorf("%s: waiting for %s: %s", releaseName(r), f.goal, f.missed)}
	case !f.reached && ctx.Err() == nil:
		return &invocation.ExitError{Code: invocation.ExitTrouble, Err: fmt.Errorf("%s: run %d is not %s within %s%s", releaseName(r), f.goal.Run, f.goal, o.timeout, f.lastWait())}
	}
	return nil
}

// follower shows what is new of a release.
type follower struct {
	*app
	goal actions.ReleaseGoal
	// draws says that each change is drawn in the place of the one before.
	draws   bool
	cluster *invocation.Cluster
	// number of the last line of the history that was shown.
	number int64
	wait   string

	reached bool
	missed  string
	err     error
}

// see shows one state of the release, and tells whether to end.
func (f *follower) see(r *v1alpha1.ABRelease, deleted bool) bool {
	if deleted {
		f.missed = "the release is deleted"
		return true
	}
	if f.draws {
		const home = "\x1b[H\x1b[2J"
		f.err = f.Print(home, f.describe(r, f.ServerTime(f.cluster)))
	} else {
		f.err = f.printNews(r)
	}
	f.reached, f.missed = f.goal.Check(r)
	return f.reached || f.missed != "" || f.err != nil
}

// printNews prints the lines of the history that were not shown, and the wait if it is another one.
func (f *follower) printNews(r *v1alpha1.ABRelease) error {
	in := r.Status.Rollout
	if in == nil {
		return nil
	}
	for i := range in.History {
		e := &in.History[i]
		if e.Number <= f.number || e.Run < f.goal.Run {
			continue
		}
		f.number = e.Number
		if err := f.Print(invocation.FormatTimestamp(e.EventTime), "  ", invocation.Printable(e.Event+"  "+e.Message), "\n"); err != nil {
			return err
		}
	}
	wait := ""
	if w := in.Waiting; w != nil && in.Run != nil && in.Run.Number >= f.goal.Run {
		wait = w.Reason
		if wait != f.wait {
			if err := f.Print(invocation.FormatTimestamp(w.StartTime), "  ", invocation.Printable("waits for "+w.Reason+": "+w.Message), "\n"); err != nil {
				return err
			}
		}
	}
	f.wait = wait
	return nil
}

func (f *follower) lastWait() string {
	if f.wait == "" {
		return ""
	}
	return "; it waits for " + f.wait
}
