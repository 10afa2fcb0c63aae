// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/controller/abrelease"
	"github.com/plumbline-dev/plumbline/internal/revisions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// leaderWorld is a world with the leader of the discovery servers, and with proxies that have at once what the leader
// tells them.
type leaderWorld struct {
	*world
	leader *abrelease.Reconciler
	router routertest.Recorder
	cells  uint64
	// follow has the pods of Deployments be there, as controllers and kubelets would.
	follow func()
}

// lead makes the leader, with the rights that the chart gives the discovery server.
func (w *leaderWorld) lead() {
	w.leader = &abrelease.Reconciler{
		Client: w.xds, Routers: w, Revisions: &revisions.Reader{Live: w.xds},
		Sequences: &abrelease.Ledger{Live: w.xds, Client: w.xds, Namespace: rendered.Namespace, Clock: clock.RealClock{}},
		Recorder:  events.NewFakeRecorder(1000), Clock: clock.RealClock{}, Log: inprocess.Log(w.t),
	}
}

// Router implements abrelease.Routers.
func (w *leaderWorld) Router(types.NamespacedName) traffic.Router { return &w.router }

// until has the leader look at the release, and pods follow, until it is so.
func (w *leaderWorld) until(what string, is func(*v1alpha1.ABRelease) bool) *v1alpha1.ABRelease {
	w.t.Helper()
	r := &v1alpha1.ABRelease{}
	w.Eventually(what, func() error {
		if _, err := w.leader.Reconcile(w.Ctx(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w.release)}); err != nil {
			return err
		}
		w.follow()
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), r); client.IgnoreNotFound(err) != nil {
			return err
		}
		if !is(r) {
			return fmt.Errorf("the status is %+v", r.Status.Rollout)
		}
		return nil
	})
	return r
}

// told is until with proxies that tell counts at each look, of which so many requests to the canary have failed.
func (w *leaderWorld) told(what string, failed uint64, is func(*v1alpha1.ABRelease) bool) *v1alpha1.ABRelease {
	w.t.Helper()
	return w.until(what, func(r *v1alpha1.ABRelease) bool {
		w.tell(failed)
		return is(r)
	})
}

// tell counts of the last second.
func (w *leaderWorld) tell(failed uint64) {
	now := time.Now()
	cell := func(variation string, over, failed uint64) traffic.Cell {
		w.cells++
		return traffic.Cell{
			Part: "a", Position: traffic.Position{Epoch: 1, Cell: w.cells}, Variation: variation, Port: 80, Sequence: w.router.Current().Sequence,
			Start: now.Add(-time.Second), From: now.Add(-time.Second), To: now, Over: over, Failed: failed, Latency: make([]uint64, signals.Buckets),
			Spread:   traffic.Spread{Proxies: 1, N: over, X: failed, NN: float64(over * over), XN: float64(over * failed), XX: float64(failed * failed)},
			Coverage: traffic.Coverage{Expected: 1, Telling: 1},
		}
	}
	w.router.Count(cell("stable", 3000, 3), cell("canary", 1000, failed))
}
