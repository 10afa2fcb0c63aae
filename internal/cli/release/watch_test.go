// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestARunIsFollowed has a run change while it is watched.
func TestARunIsFollowed(t *testing.T) {
	at := clitest.Before(0)
	line := func(r *v1alpha1.ABRelease, run int64, event, message string) {
		in := r.Status.Rollout
		in.History = append(in.History, v1alpha1.RolloutEvent{Number: int64(len(in.History) + 1), EventTime: at, Run: run, Event: event, Message: message})
	}
	end := func(state v1alpha1.RunState, event, message string) func(*v1alpha1.ABRelease) {
		return func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Run.State, r.Status.Rollout.Run.Message, r.Status.Rollout.Waiting = state, message, nil
			line(r, 7, event, message)
		}
	}
	const begun = "2026-03-01T11:40:00Z  ab.created  run 7: green from shop:1 to shop:2�[31m\n2026-03-01T11:40:00Z  waits for Approval: a person to approve stage 2\n"
	for name, tc := range map[string]struct {
		args []string
		// changes happen one after the other, each once the one before was seen.
		changes []func(*v1alpha1.ABRelease)
		gone    bool
		want    clitest.Answer
	}{
		"until it is completed": {
			args: []string{"--until", "Completed"}, changes: []func(*v1alpha1.ABRelease){
				func(r *v1alpha1.ABRelease) { line(r, 7, "ab.stage_advanced", "25 → 100%") },
				func(*v1alpha1.ABRelease) {}, // as when counts alone change
				end("Completed", "ab.promoted", "all stages passed"),
			},
			want: clitest.Answer{Stdout: begun + "2026-03-01T12:00:00Z  ab.stage_advanced  25 → 100%\n2026-03-01T12:00:00Z  ab.promoted  all stages passed\n"},
		},
		"to another end than the one that is waited for": {
			args: []string{"--until", "Completed"}, changes: []func(*v1alpha1.ABRelease){end("RolledBack", "ab.rolled_back", "5 % errors")},
			want: clitest.Answer{
				Code: 1, Stdout: begun + "2026-03-01T12:00:00Z  ab.rolled_back  5 % errors\n",
				Stderr: "error: shop/web: waiting for Completed: run 7 is RolledBack: 5 % errors\n",
			},
		},
		"until a point that it is at":  {args: []string{"--until", "Waiting=Approval"}, want: clitest.Answer{Stdout: begun}},
		"until a stage that has begun": {args: []string{"--until", "Stage=1"}, want: clitest.Answer{Stdout: begun}},
		"of a run that is to come": {
			args: []string{"--until", "Ended", "--run", "8", "--timeout", "20ms"},
			want: clitest.Answer{Code: 2, Stderr: "error: shop/web: run 8 is not Ended within 20ms\n"},
		},
		"and is not at the point in time": {
			args: []string{"--until", "Ended", "--timeout", "20ms"},
			want: clitest.Answer{Code: 2, Stdout: begun, Stderr: "error: shop/web: run 7 is not Ended within 20ms; it waits for Approval\n"},
		},
		"and is deleted": {
			args: []string{"--until", "Ended"}, gone: true,
			want: clitest.Answer{Code: 1, Stdout: begun, Stderr: "error: shop/web: waiting for Ended: the release is deleted\n"},
		},
		"until something that there is not": {
			args: []string{"--until", "Done"},
			want: clitest.Answer{Code: 2, Stderr: "error: --until: \"Done\": want Completed, RolledBack, Ended, Stage=N with a number from 1 to 16, or Waiting=REASON\nSee 'kubectl plumbline release watch -h' for help and examples\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.Cluster{Objects: []client.Object{rolling()}}
			f.Hooks.Watch = func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
				w, err := api.Watch(ctx, list, options...)
				if err != nil {
					return nil, err
				}
				for _, change := range tc.changes {
					r := &v1alpha1.ABRelease{}
					if err := api.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, r); err != nil {
						return nil, err
					}
					change(r)
					if err := api.Update(ctx, r); err != nil {
						return nil, err
					}
				}
				if tc.gone {
					err = api.Delete(ctx, rolling())
				}
				return w, err
			}
			got := f.Run(t, commands, "", append([]string{"release", "watch", "web"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
