// SPDX-License-Identifier: Apache-2.0

//go:build integration

package replicas

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// M7: a replica is cut off from the API server and not from proxies. It takes itself out of the
// Service while the leader hears, and a proxy that comes to it all the same keeps newer endpoints.
func TestAReplicaThatIsCutOffTakesItselfOutAndNothingBack(t *testing.T) {
	w := newWorld(t)
	w.changing()
	s := w.sidecar("front-0", w.leader)
	router := w.decide(1, 0)
	w.seen(router, "it is acknowledged", func(o traffic.Observation) bool { return o.Knowledge == traffic.Proven && o.Wanted == 1 })
	served := func(by string) {
		t.Helper()
		poll.Until(t, patience, "requests are served by "+by, func() error {
			if got := w.answers(s.front, "x", 1); got[by] != 1 {
				return fmt.Errorf("they are by %v", got)
			}
			return nil
		})
	}
	served("stable")
	if err := errors.Join(w.leader.watches.Check(), w.other.watches.Check()); err != nil {
		t.Fatal(err)
	}

	w.other.api.Lead()
	w.other.api.Cut()
	w.replaceStable("stable-2")
	served("stable-2")
	poll.True(t, patience, "the replica that is cut off is not ready", func() bool { return w.other.watches.Check() != nil })
	if err := w.leader.watches.Check(); err != nil {
		t.Errorf("the leader is not ready: %v", err)
	}

	s.way.Lead(w.other.address)
	s.way.Cut()
	poll.Until(t, patience, "the proxy is at the other replica", func() error { return w.other.hears() })
	if d := cmp.Diff(map[string]uint64{"stable-2": 300}, w.answers(s.front, "y", 300)); d != "" {
		t.Errorf("there its requests are served by (-want +got):\n%s", d)
	}

	w.other.api.Lead(apiServer(t))
	poll.Until(t, patience, "the replica is ready again", w.other.watches.Check)
	w.replaceStable("stable-3")
	served("stable-3")
}

// changing has something change all the time, as leases do.
func (w *world) changing() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		service := &corev1.Service{ObjectMeta: named(w.shop, "web")}
		for i := 0; ; i++ {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/beat":"%d"}}}`, i)
			_ = admin.Patch(ctx, service, client.RawPatch("application/merge-patch+json", []byte(patch))) // the next one comes
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	w.t.Cleanup(func() { stop(); <-done })
}

// replaceStable has the only pod of the stable variation be another one, elsewhere.
func (w *world) replaceStable(by string) {
	w.t.Helper()
	var pods corev1.PodList
	labels := client.MatchingLabels{"app": "web", "version": "stable"}
	w.must(admin.List(w.t.Context(), &pods, client.InNamespace(w.shop), labels))
	at := netip.MustParseAddrPort(backend.Start(w.t, by))
	meta := named(w.shop, "web-"+by)
	meta.Labels = labels
	w.pod(meta, "front", at.Addr().String(), corev1.ContainerPort{Name: "web", ContainerPort: int32(at.Port())})
	for i := range pods.Items {
		w.must(admin.Delete(w.t.Context(), &pods.Items[i], client.GracePeriodSeconds(0)))
	}
}

// hears is an error until a proxy has said to a replica which resources it has.
func (r *replica) hears() error {
	families, err := r.registry.Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if f.GetName() == "plumbline_xds_acknowledged_total" && len(f.GetMetric()) >= 3 {
			return nil
		}
	}
	return errors.New("it has acknowledged nothing there")
}
