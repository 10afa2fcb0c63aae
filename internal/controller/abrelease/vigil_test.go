// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// pass lets the time of the bubble go on.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// watched is a vigil over a run that fails, with its orders.
func watched(t *testing.T, of *Reconciler) (v *Vigil, away *atomic.Bool, follows *atomic.Int64) {
	t.Helper()
	away, follows = &atomic.Bool{}, &atomic.Int64{}
	v = &Vigil{
		Follow: func(ctx context.Context) error {
			follows.Add(1)
			defer follows.Add(-1)
			<-ctx.Done()
			return nil
		},
		Ask: func(context.Context) error {
			if away.Load() {
				return errAway
			}
			return nil
		},
		Clock: clock.RealClock{}, Log: logr.Discard(),
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); v.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return v, away, follows
}

// TestAVigilOrdersBackWhatFailsAfterTheLeaseHasEnded goes from leading to the end of an outage.
func TestAVigilOrdersBackWhatFailsAfterTheLeaseHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, orders, stage := failing(t)
		prepared := uint64(stage.Status.Effective.PreparedSequence) //nolint:gosec // positive
		v, away, follows := watched(t, w.Reconciler)
		end := v.lead(w.Reconciler)
		away.Store(true)
		for n := range uint64(4) {
			w.tells(n+1, 50)
		}
		pass(time.Minute)
		if len(orders.sequences) > 0 || follows.Load() > 0 {
			t.Fatalf("who leads keeps no vigil, and ordered are %v", orders.sequences)
		}
		end()
		pass(5 * time.Second)
		if !slices.Equal(orders.sequences, []uint64{prepared}) || follows.Load() != 1 {
			t.Errorf("ordered are %v, want %d; %d follow the other replicas", orders.sequences, prepared, follows.Load())
		}
		if r := w.stored(); r.Status.Effective.Sequence != stage.Status.Effective.Sequence || r.ResourceVersion != stage.ResourceVersion {
			t.Errorf("a vigil has written: sequence %d", r.Status.Effective.Sequence)
		}
		away.Store(false)
		pass(5 * time.Second)
		if v.pending() != nil || follows.Load() != 0 {
			t.Error("the vigil goes on although the API server answers")
		}
		// The next leader is another process, which has the order of its replica alone.
		if r := w.looks(); r.Status.Rollout.Run.State != "RolledBack" || r.Status.Effective.Sequence != stage.Status.Effective.PreparedSequence {
			t.Errorf("in force is sequence %d, and the run is %+v", r.Status.Effective.Sequence, r.Status.Rollout.Run)
		}
	})
}

// A vigil cannot read the workloads of a clone, and has to find its failure all the same.
func TestAVigilOrdersBackAClone(t *testing.T) {
	w, e := cloning(t)
	orders := &given{}
	w.Orders = orders
	e.live(t, 8)
	for n := range uint64(2) { // the pods of the clone were just made
		e.tells(n+1, 0)
		e.live(t, 3)
	}
	stage := w.stored()
	prepared := uint64(max(stage.Status.Effective.PreparedSequence, 0)) //nolint:gosec // it is not negative
	if stage.Status.Split != "stable 90 / canary 10" || prepared == 0 {
		t.Fatalf("in force is %q with %+v: %+v", stage.Status.Split, stage.Status.Effective, stage.Status.Rollout.Waiting)
	}
	watching := w.onVigil()
	for n := range uint64(4) {
		e.tells(n+3, 50)
		if err := watching.watch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(orders.sequences, []uint64{prepared}) {
		t.Errorf("ordered are %v, want %d", orders.sequences, prepared)
	}
	if now := w.stored(); now.ResourceVersion != stage.ResourceVersion || rollout.StateOf(&now.Status).Run.State != rollout.Running {
		t.Error("the vigil has written")
	}
}

// A vigil can read no group, so the errors of requests alone order the rollback.
func TestAVigilOrdersBackRequestsBesideGroups(t *testing.T) {
	w, e, _ := pairing(t)
	orders := &given{}
	w.Orders = orders
	stage := e.live(t, 6)
	prepared := uint64(max(stage.Status.Effective.PreparedSequence, 0)) //nolint:gosec // it is not negative
	if stage.Status.Split != "stable 75 / canary 25" || prepared == 0 {
		t.Fatalf("in force is %q with %+v", stage.Status.Split, stage.Status.Effective)
	}
	watching := w.onVigil()
	for n := range uint64(6) {
		if e.tells(n+1, []uint64{0, 0, 50, 50, 50, 50}[n]); n == 2 && len(orders.sequences) > 0 {
			t.Fatalf("without a failure %v are ordered", orders.sequences)
		}
		if err := watching.watch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(orders.sequences, []uint64{prepared}) || len(e.did) != 2 {
		t.Errorf("ordered are %v, want %d, and the executor did %q", orders.sequences, prepared, e.did)
	}
	r := e.live(t, 10)
	if got := strings.Join(e.did, ", "); got != badPair || r.Status.Rollout.Run.State != "RolledBack" || uint64(r.Status.Effective.Sequence) != prepared { //nolint:gosec // positive
		t.Errorf("the executor did %q, and in force is sequence %d: %+v", got, r.Status.Effective.Sequence, r.Status.Rollout.Run)
	}
}

func TestAVigilOrdersNothingWithoutAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, orders, stage := failing(t)
		v, away, _ := watched(t, w.Reconciler)
		away.Store(true)
		v.lead(w.Reconciler)()
		for n := range uint64(12) {
			w.tells(n+1, 0)
			pass(10 * time.Second)
		}
		if len(orders.sequences) > 0 {
			t.Errorf("ordered are %v", orders.sequences)
		}
		if now := w.router.Current().Sequence; now != uint64(stage.Status.Effective.Sequence) { //nolint:gosec // positive
			t.Errorf("the router is told sequence %d", now)
		}
	})
}

func TestAVigilEndsWhenItsReplicaLeadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := failing(t)
		v, away, follows := watched(t, w.Reconciler)
		away.Store(true)
		v.lead(w.Reconciler)()
		pass(5 * time.Second)
		if follows.Load() != 1 {
			t.Fatal("there is no vigil")
		}
		defer v.lead(&Reconciler{})()
		pass(5 * time.Second)
		if follows.Load() != 0 {
			t.Error("the vigil goes on")
		}
	})
}

func TestTheAPIServerIsAway(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"not when it answers":                    {nil, false},
		"not when it refuses":                    {apierrors.NewForbidden(leases, "plumbline-xds", errors.New("no")), false},
		"not when there is no lease":             {apierrors.NewNotFound(leases, "plumbline-xds"), false},
		"when it is not reached":                 {errAway, true},
		"when it does not answer in time":        {context.DeadlineExceeded, true},
		"when its store is away":                 {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), true},
		"when it says that it cannot answer now": {apierrors.NewServiceUnavailable("later"), true},
	} {
		t.Run(name, func(t *testing.T) {
			v := &Vigil{Ask: func(context.Context) error { return tc.err }}
			if got := v.away(t.Context()); got != tc.want {
				t.Errorf("it is away: %v", got)
			}
		})
	}
}

// stored is the release as the API server has it.
func (w *world) stored() *v1alpha1.ABRelease {
	w.Helper()
	r := &v1alpha1.ABRelease{}
	if err := w.Client.Get(w.Context(), webName, r); err != nil {
		w.Fatal(err)
	}
	return r
}
