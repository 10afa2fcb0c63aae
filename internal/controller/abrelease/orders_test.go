// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

var webName = types.NamespacedName{Namespace: "shop", Name: "web"}

// given are the orders that all replicas know of. It implements Orders.
type given struct{ sequences []uint64 }

// Order implements Orders.
func (g *given) Order(_ types.UID, sequence uint64) error {
	if !slices.Contains(g.sequences, sequence) {
		g.sequences = append(g.sequences, sequence)
	}
	return nil
}

// Ordered implements Orders.
func (g *given) Ordered(_ types.UID, sequence uint64) bool {
	return slices.Contains(g.sequences, sequence)
}

// errAway is what each write meets while the API server is away.
var errAway = errors.New("connection refused")

// outage has all writes fail until it ends.
func (w *world) outage() (end func()) {
	w.Helper()
	inner, is := w.Client.(client.WithWatch)
	if !is {
		w.Fatalf("the client is a %T", w.Client)
	}
	w.Client = interceptor.NewClient(inner, interceptor.Funcs{
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return errAway
		},
	})
	return func() { w.Client = inner }
}

// lookInVain has the release looked at, and its decision not stored.
func (w *world) lookInVain() {
	w.Helper()
	if _, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: webName}); !errors.Is(err, errAway) {
		w.Fatalf("the error is %v", err)
	}
}

// failing is a world whose canary fails half of its requests, in its first stage.
func failing(t *testing.T) (w *world, orders *given, stage *v1alpha1.ABRelease) {
	t.Helper()
	w, _ = rolling(t)
	orders = &given{}
	w.Orders = orders
	stage = w.looks()
	if stage.Status.Split != "stable 90 / canary 10" || stage.Status.Effective.PreparedSequence != stage.Status.Effective.Sequence+1 {
		t.Fatalf("in force is %q with %+v", stage.Status.Split, stage.Status.Effective)
	}
	return w, orders, stage
}

func TestAFailureIsOrderedBackWhileTheAPIServerIsAway(t *testing.T) {
	w, orders, stage := failing(t)
	prepared := uint64(stage.Status.Effective.PreparedSequence) //nolint:gosec // positive
	back := w.outage()
	for n := range uint64(4) {
		w.tells(n+1, 50)
		if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: webName}); err != nil && !errors.Is(err, errAway) {
			t.Fatal(err)
		}
	}
	if !slices.Equal(orders.sequences, []uint64{prepared}) {
		t.Fatalf("ordered are %v, want %d alone", orders.sequences, prepared)
	}
	w.lookInVain()
	if now := w.router.Current(); now.Sequence != prepared || now.Shares[1].Weight != 0 {
		t.Errorf("the router is told sequence %d with %v", now.Sequence, now.Shares)
	}
	back()
	r := w.looks()
	run := r.Status.Rollout.Run
	if r.Status.Split != "stable 100 / canary 0" || r.Status.Effective.Sequence != stage.Status.Effective.PreparedSequence || r.Status.Effective.PreparedSequence != 0 {
		t.Errorf("in force is %q with %+v", r.Status.Split, r.Status.Effective)
	}
	if run.State != "RolledBack" || run.Reason != "StageFailed" || !strings.Contains(run.Message, "errors") {
		t.Errorf("the run is %s because %s: %s", run.State, run.Reason, run.Message)
	}
	if r = w.looks(); r.Status.Effective.Sequence != stage.Status.Effective.PreparedSequence {
		t.Errorf("the sequence goes on to %d", r.Status.Effective.Sequence)
	}
	w.neverBack(t, false)
}

// The leader that gave the order is gone, and with it the counts that the order rests on.
func TestTheNextLeaderAdoptsWhatIsOrdered(t *testing.T) {
	for name, learn := range map[string]func(*world, *given, uint64){
		"by the order": func(_ *world, orders *given, prepared uint64) { orders.sequences = []uint64{prepared} },
		"by what proxies have": func(w *world, _ *given, prepared uint64) {
			w.router.Say(traffic.Observation{Knowledge: traffic.Contradicted, Ahead: prepared, Wanted: 1, OutOfSync: []traffic.OutOfSync{{Name: "shop/front-0", Why: "is ahead"}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, orders, stage := failing(t)
			learn(w, orders, uint64(stage.Status.Effective.PreparedSequence)) //nolint:gosec // positive
			r := w.look()
			run := r.Status.Rollout.Run
			if run.State != "RolledBack" || run.Reason != "StageFailed" || !strings.Contains(run.Message, "ordered the prepared rollback") {
				t.Errorf("the run is %s because %s: %s", run.State, run.Reason, run.Message)
			}
			if r.Status.Split != "stable 100 / canary 0" || r.Status.Effective.Sequence != stage.Status.Effective.PreparedSequence {
				t.Errorf("in force is %q with sequence %d, want %d", r.Status.Split, r.Status.Effective.Sequence, stage.Status.Effective.PreparedSequence)
			}
		})
	}
}

func TestAnOrderOfAStageThatIsPastChangesNothing(t *testing.T) {
	w, orders, stage := failing(t)
	for n := range uint64(12) {
		w.tells(n+1, 0)
		w.look()
	}
	orders.sequences = []uint64{uint64(stage.Status.Effective.PreparedSequence)} //nolint:gosec // positive
	r := w.looks()
	if r.Status.Split != "canary 100 / stable 0" || r.Status.Rollout.Run.State != "Completed" {
		t.Errorf("in force is %q in %+v", r.Status.Split, r.Status.Rollout.Run)
	}
	if r.Status.Effective.PreparedSequence != 0 {
		t.Errorf("a rollback is prepared with sequence %d, and no run is on", r.Status.Effective.PreparedSequence)
	}
}
