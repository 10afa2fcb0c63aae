// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The exit codes of watch beside those of all commands.
const (
	exitMissed = 3
	// exitTimeout is that of timeout(1).
	exitTimeout = 124
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
		Short: "Follow a release, and end when it is where you want it",
		Long: `Follow a release. On a terminal the command redraws the screen of "release get", with
bars for the bets that it has seen: the highest bar fails the canary. Elsewhere each new
event of the history, and each new wait, is one line. The first lines are the events
of the run that began last. The command reconnects when a connection breaks.

--until names the state that ends the command: Completed, RolledBack, Ended (either of
both), Stage=N (the run has reached that stage) or Waiting=REASON. Without --until the
command goes on until you interrupt it. A state that the release has already ends the
command at once. The run is the one that is on, or else the next one. --run names another
one, which may have ended.

The exit code is 0 when the release has reached the state, and 3 when the run has ended
otherwise. It is 124 when --timeout is over, and 1 on an error, such as the deletion of
the release.`,
		Example: invocation.Examples(
			"# Follow the rollout of web", "%s release watch web",
			"# Fail a pipeline when run 8 is rolled back", "%s release watch web --run 8 --until Completed --timeout 2h",
			"# Go on when a person has to approve", "%s release watch web --until Waiting=Approval"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.watch(cmd, args, o) },
		ValidArgsFunction: a.completeRelease,
	}
	cmd.Flags().StringVar(&o.until, "until", "", "The state that ends the command. One of: (Completed, RolledBack, Ended, Stage=N, Waiting=REASON).")
	cmd.Flags().Int64Var(&o.run, "run", 0, "Number of the run that --until is about; left out, the run that is on, or else the next one.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "How long to follow the release; 0s: no limit.")
	goals := progress.Goals()
	for n := 1; n <= 4; n++ {
		goals = append(goals, fmt.Sprintf("%s=%d", progress.GoalStage, n))
	}
	invocation.CompleteValues(cmd, "until", goals...)
	return cmd
}

func (a *app) watch(cmd *cobra.Command, args []string, o watchOptions) error {
	if len(args) != 1 {
		return invocation.UsageErrorf(cmd, "name one release")
	}
	goal, err := progress.ParseGoal(o.until)
	switch {
	case err != nil:
		return invocation.UsageErrorf(cmd, "%v", err)
	case o.run < 0 || o.timeout < 0:
		return invocation.UsageErrorf(cmd, "--run and --timeout are not negative")
	}
	goal.Run = o.run
	c, err := a.Connect()
	if err != nil {
		return err
	}
	ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
	if o.timeout > 0 {
		ctx, cancel = context.WithTimeout(cmd.Context(), o.timeout)
	}
	defer cancel()
	outcome, last, err := a.followNamed(ctx, c, args[0], &goal)
	switch {
	case cmd.Context().Err() != nil:
		return cmd.Context().Err()
	case err != nil && ctx.Err() == nil:
		return err
	}
	return outcomeError(outcome, last, c.Namespace+"/"+args[0], goal, o)
}

// outcomeError returns the error and the exit code of an outcome; nil if the goal was reached.
func outcomeError(outcome progress.Outcome, last *v1alpha1.ABRelease, name string, goal progress.Goal, o watchOptions) error {
	switch outcome {
	case progress.Reached:
		return nil
	case progress.Missed:
		run := last.Status.Rollout.Run
		if run.Number > goal.Run {
			return &invocation.ExitError{Code: exitMissed, Err: fmt.Errorf("%s has not reached %s: run %d is over, and run %d follows", name, o.until, goal.Run, run.Number)}
		}
		return &invocation.ExitError{Code: exitMissed, Err: fmt.Errorf("%s has not reached %s: run %d is %s%s", name, o.until, run.Number, run.State, orNothing(": ", run.Message))}
	case progress.Awaited:
	}
	return &invocation.ExitError{Code: exitTimeout, Err: fmt.Errorf("%s has not reached %s within %s", name, cmp.Or(o.until, "an end of the watch"), o.timeout)}
}

// followNamed reads a release and follows it, on a terminal by a screen, and by lines elsewhere.
func (a *app) followNamed(ctx context.Context, c *invocation.Cluster, name string, goal *progress.Goal) (progress.Outcome, *v1alpha1.ABRelease, error) {
	r, err := read(ctx, c, name)
	if err != nil {
		return progress.Awaited, nil, err
	}
	*goal = goal.For(r.Status.Rollout)
	var v view = &lineView{app: a}
	if printers.IsTerminal(a.Out) {
		v = &screenView{app: a, now: func() time.Time { return a.ServerTime(c) }}
	}
	return a.follow(ctx, c, r, *goal, v)
}

// view shows a release that changes.
type view interface {
	show(r *v1alpha1.ABRelease) error
	// period is how often the view shows the same release again; 0 for never.
	period() time.Duration
}

// sighting is a release as it was seen, or the end of the watch.
type sighting struct {
	release *v1alpha1.ABRelease
	deleted bool
	ended   bool
	err     error
}

// follow shows each change of a release until the goal is reached or missed, or the context ends. last is
// the release as it was seen last.
func (a *app) follow(ctx context.Context, c *invocation.Cluster, r *v1alpha1.ABRelease, goal progress.Goal, v view) (outcome progress.Outcome, last *v1alpha1.ABRelease, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sightings := make(chan sighting)
	send := func(s sighting) {
		select {
		case sightings <- s:
		case <-ctx.Done():
		}
	}
	go func() {
		warn := func(err error) { send(sighting{err: err}) }
		err := actions.FollowRelease(ctx, c, r, a.pause, warn, func(current *v1alpha1.ABRelease, deleted bool) bool {
			send(sighting{release: current, deleted: deleted})
			return deleted || ctx.Err() != nil
		})
		send(sighting{ended: true, err: err})
	}()
	again, stop := ticks(v.period())
	defer stop()
	last = r
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-again:
			if err := v.show(last); err != nil {
				return progress.Awaited, last, err
			}
		case s := <-sightings:
			switch {
			case s.ended:
				return progress.Awaited, last, s.err
			case s.err != nil:
				a.Warn("the watch of %s was interrupted, and is taken up again: %v", releaseName(r), s.err)
				continue
			case s.deleted:
				return progress.Awaited, last, fmt.Errorf("%s was deleted meanwhile", releaseName(r))
			}
			last = s.release
			if err := v.show(last); err != nil {
				return progress.Awaited, last, err
			}
			if outcome = goal.Judge(last.Status.Rollout); outcome != progress.Awaited {
				return outcome, last, nil
			}
		}
	}
	return progress.Awaited, last, nil
}

// ticks returns a channel that tells each period; a period of 0 never.
func ticks(period time.Duration) (again <-chan time.Time, stop func()) {
	if period == 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(period)
	return ticker.C, ticker.Stop
}
