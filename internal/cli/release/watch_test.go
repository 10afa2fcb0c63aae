// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// impatient are the commands of this package without a pause before a watch is taken up again.
var impatient = []clitest.Verb{func(inv *invocation.Invocation) *cobra.Command {
	return (&app{Invocation: inv, pause: func(context.Context, int) {}}).command()
}}

// happen adds a line to the history, and changes the run.
func happen(event string, change func(*v1alpha1.RolloutStatus)) func(*v1alpha1.ABRelease) {
	return func(r *v1alpha1.ABRelease) {
		in := r.Status.Rollout
		n := in.History[len(in.History)-1].Number + 1
		in.History = append(in.History, v1alpha1.RolloutEvent{Number: n, EventTime: clitest.Before(time.Duration(10-n) * time.Minute), Run: in.Run.Number, Event: event, Message: "as it is"})
		change(in)
	}
}

func TestWatch(t *testing.T) {
	approved := happen("ab.verb_answered", func(in *v1alpha1.RolloutStatus) { in.Waiting = nil })
	advanced := happen("ab.stage_advanced", func(in *v1alpha1.RolloutStatus) {
		in.Stage = 3
		in.Waiting = &v1alpha1.RolloutWait{Reason: "Acknowledgment", StartTime: clitest.Before(time.Minute), Message: "proxies to have 100% at green"}
	})
	promoted := happen("ab.promoted", func(in *v1alpha1.RolloutStatus) { in.Stage, in.Run.State, in.Waiting = 0, "Completed", nil })
	rolledBack := happen("ab.rolled_back", func(in *v1alpha1.RolloutStatus) {
		in.Stage, in.Run.State, in.Run.Message, in.Waiting = 0, "RolledBack", "stage 2 failed: e 300", nil
	})
	// A watch answers with the release after a change, or breaks.
	type step struct {
		change  func(*v1alpha1.ABRelease)
		err     error
		deleted bool
	}
	away := apierrors.NewServiceUnavailable("the API server starts")
	for name, tc := range map[string]struct {
		args  []string
		steps []step
		code  int
		err   string
	}{
		"to-the-end":    {[]string{"--until", "Completed"}, []step{{change: approved}, {change: advanced}, {change: promoted}}, 0, ""},
		"rolled-back":   {[]string{"--until", "Completed"}, []step{{change: rolledBack}}, 3, "error: shop/web has not reached Completed: run 7 is RolledBack: stage 2 failed: e 300\n"},
		"at-once":       {[]string{"--until", "Waiting=Approval"}, nil, 0, ""},
		"deleted":       {[]string{"--until", "Ended"}, []step{{deleted: true}}, 1, "error: shop/web was deleted meanwhile\n"},
		"interrupted":   {[]string{"--until", "Stage=3"}, []step{{err: away}, {err: apierrors.NewResourceExpired("old")}, {change: advanced}}, 0, "Warning: the watch of shop/web was interrupted, and is taken up again: the API server starts\n"},
		"refused":       {[]string{"--until", "Ended"}, []step{{err: apierrors.NewUnauthorized("who are you")}}, 1, "Error from server (Unauthorized): who are you\n"},
		"out-of-time":   {[]string{"--until", "Ended", "--timeout", "1ns"}, nil, 124, "error: shop/web has not reached Ended within 1ns\n"},
		"a-stage-of-17": {[]string{"--until", "Stage=17"}, nil, 1, "error: reading the goal \"Stage=17\": a stage has a number from 1 to 16\nSee 'kubectl plumbline release watch -h' for help and examples\n"},
	} {
		t.Run(name, func(t *testing.T) {
			steps := tc.steps
			f := clitest.Cluster{Objects: []client.Object{rolling()}}
			f.Hooks.Watch = func(ctx context.Context, api client.WithWatch, _ client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
				if len(steps) == 0 {
					return watch.NewFake(), nil
				}
				next := steps[0]
				steps = steps[1:]
				if next.err != nil {
					return nil, next.err
				}
				current := &v1alpha1.ABRelease{}
				if err := api.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, current); err != nil {
					return nil, err
				}
				w := watch.NewFakeWithChanSize(2, false)
				if next.deleted {
					w.Delete(current)
					return w, nil
				}
				next.change(current)
				if err := api.Update(ctx, current); err != nil {
					return nil, err
				}
				w.Modify(current)
				w.Error(&metav1.Status{Reason: metav1.StatusReasonExpired})
				return w, nil
			}
			got := f.Run(t, impatient, "", append([]string{"release", "watch", "web"}, tc.args...)...)
			if got.Code != tc.code || got.Stderr != tc.err {
				t.Errorf("exit code %d, %q", got.Code, got.Stderr)
			}
			golden.Check(t, "testdata/watch-"+name+".txt", got.Stdout)
		})
	}
	if got := (clitest.Cluster{}).Run(t, impatient, "", "release", "watch", "web"); got.Code != 1 || !strings.Contains(got.Stderr, "not found") {
		t.Errorf("of no release: %+v", got)
	}
}

func TestWatch_DrawsInPlace(t *testing.T) {
	inv, finish := clitest.NewInvocation(t, "")
	v := &screenView{app: &app{Invocation: inv}, now: inv.Now}
	for range 2 {
		if err := v.show(rolling()); err != nil {
			t.Fatal(err)
		}
	}
	frames := strings.Split(finish(0).Stdout, invocation.Redraw)
	if len(frames) != 3 || frames[0] != "" || frames[1] != frames[2] {
		t.Fatalf("frames %q", frames)
	}
	golden.Check(t, "testdata/get.txt", frames[1])
}

// The bars show the bets that the watch has seen, each evaluation once.
func TestWatch_DrawsBets(t *testing.T) {
	inv, finish := clitest.NewInvocation(t, "")
	v := &screenView{app: &app{Invocation: inv}, now: inv.Now}
	r := rolling()
	for i, e := range []v1alpha1.Decimal{"0.8", "0.8", "1.5", "20", "199", "250.5"} {
		r.Status.Rollout.Analysis.EvaluationTime = new(clitest.Before(time.Duration(10-i) * time.Minute))
		r.Status.Rollout.Analysis.Errors.EValue = e
		for range 2 {
			if err := v.show(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	frames := strings.Split(finish(0).Stdout, invocation.Redraw)
	golden.Check(t, "testdata/watch-screen.txt", frames[len(frames)-1])
}

func TestWatch_CompletesGoals(t *testing.T) {
	got := clitest.Cluster{}.Run(t, impatient, "", "__complete", "release", "watch", "web", "--until", "Wa")
	if !strings.Contains(got.Stdout, "Waiting=Approval\n") {
		t.Errorf("%+v", got)
	}
}
