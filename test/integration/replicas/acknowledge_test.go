// SPDX-License-Identifier: Apache-2.0

//go:build integration

package replicas

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestTheLeaderCountsTheProxiesOfAllReplicas(t *testing.T) {
	w := newWorld(t)
	w.sidecar("front-0", w.leader)
	w.sidecar("front-1", w.other)
	router := w.decide(1, 1000)
	w.seen(router, "both have acknowledged the first decision", proven(1, 2))
	router = w.decide(2, 5000)
	seen := w.seen(router, "both have acknowledged the second", proven(2, 2))
	if len(seen.Arms) != 2 || seen.Arms[0].Variation != "stable" {
		t.Errorf("the variations are %+v", seen.Arms)
	}
	if err := router.Apply(t.Context(), routertest.Split(1, 5_000)); err == nil {
		t.Error("a lower sequence is applied")
	}
	want := `
# HELP plumbline_xds_peers Other replicas by their state: heard, or unheard, with proxies that count as unacknowledged. Both are 0 unless this replica leads.
# TYPE plumbline_xds_peers gauge
plumbline_xds_peers{state="heard"} 1
plumbline_xds_peers{state="unheard"} 0
`
	if err := testutil.GatherAndCompare(w.leader.registry, strings.NewReader(want), "plumbline_xds_peers"); err != nil {
		t.Error(err)
	}
	if err := testutil.GatherAndCompare(w.leader.registry, strings.NewReader(`
# HELP plumbline_xds_unacknowledged_proxies Proxies that have not acknowledged the effective split, over all releases, when each was last looked at; by the replica that leads.
# TYPE plumbline_xds_unacknowledged_proxies gauge
plumbline_xds_unacknowledged_proxies 0
`), "plumbline_xds_unacknowledged_proxies"); err != nil {
		t.Error(err)
	}
	// Who does not lead does not know.
	if _, err := w.other.routers.Router(client.ObjectKeyFromObject(w.release)).Observe(t.Context()); err == nil {
		t.Error("who does not lead says what it knows")
	}
}

func TestAReplicaThatIsKilledIsNamedUntilItsProxiesAreElsewhere(t *testing.T) {
	w := newWorld(t)
	w.sidecar("front-0", w.leader)
	moves := w.sidecar("front-1", w.other)
	router := w.decide(1, 1000)
	w.seen(router, "both have acknowledged it", proven(1, 2))

	moves.way.Lead() // nowhere yet
	moves.way.Cut()
	w.other.stop()
	seen := w.seen(router, "the replica is not heard, and its proxy unknown", func(s traffic.Observation) bool {
		return s.Knowledge == traffic.Unknown && slices.Equal(s.Unheard, []string{"xds-b"}) && len(s.OutOfSync) == 1
	})
	if l := seen.OutOfSync[0]; l.Name != moves.name || seen.Wanted != 2 || seen.Acknowledged != 1 {
		t.Errorf("what is seen is %+v", seen)
	}
	moves.way.Lead(w.leader.address)
	w.seen(router, "the proxy has acknowledged it at the other replica", proven(1, 2))
	router = w.decide(2, 2000)
	w.seen(router, "and what comes then", proven(2, 2))
	w.must(admin.Delete(t.Context(), w.other.pod, client.GracePeriodSeconds(0)))
	w.seen(router, "nobody asks for the replica any more", func(s traffic.Observation) bool { return len(s.Unheard) == 0 })
}

func TestAStoppedProxyIsNamed(t *testing.T) {
	w := newWorld(t)
	w.sidecar("front-0", w.leader)
	stops := w.sidecar("front-1", w.other)
	router := w.decide(1, 1000)
	w.seen(router, "both have acknowledged it", proven(1, 2))
	stops.Signal(syscall.SIGSTOP)
	router = w.decide(2, 2000)
	seen := w.seen(router, "the stopped one is a proxy that is out of sync", func(s traffic.Observation) bool {
		return s.Acknowledged == 1 && len(s.OutOfSync) == 1 && strings.Contains(s.OutOfSync[0].Why, "has not answered")
	})
	if l := seen.OutOfSync[0]; l.Name != stops.name || l.Has != 1 || seen.Knowledge != traffic.Unknown || seen.Sequence != 1 {
		t.Errorf("what is seen is %+v", seen)
	}
	stops.Signal(syscall.SIGCONT)
	w.seen(router, "it has acknowledged it when it goes on", proven(2, 2))
}

func TestAProxyThatRefusesIsNamedWithWhatItSays(t *testing.T) {
	w := newWorld(t)
	w.sidecar("front-0", w.leader)
	refuses := w.sidecar("front-1", w.other)
	router := w.decide(1, 1000)
	w.seen(router, "both have acknowledged it", proven(1, 2))
	w.must(refuses.Post(t.Context(), "/runtime_modify?re2.max_program_size.error_level=1"))
	router = w.decide(2, 2000)
	seen := w.seen(router, "it refuses the route", func(s traffic.Observation) bool {
		return len(s.OutOfSync) == 1 && strings.Contains(s.OutOfSync[0].Why, "refuses 2.")
	})
	if l := seen.OutOfSync[0]; l.Name != refuses.name || l.Has != 1 || !strings.Contains(l.Why, "program size") {
		t.Errorf("what is seen is %+v", seen)
	}
}

func TestAPodWhoseProxyIsAwayIsNamed(t *testing.T) {
	w := newWorld(t)
	w.sidecar("front-0", w.leader)
	ends := w.sidecar("front-1", w.other)
	router := w.decide(1, 1000)
	w.seen(router, "both have acknowledged it", proven(1, 2))
	ends.Stop()
	seen := w.seen(router, "it is missed", func(s traffic.Observation) bool { return len(s.OutOfSync) == 1 })
	if l := seen.OutOfSync[0]; l.Name != ends.name || !strings.Contains(l.Why, "is not connected since 20") {
		t.Errorf("what is seen is %+v", seen)
	}
	w.must(admin.Delete(t.Context(), &corev1.Pod{ObjectMeta: named(w.shop, "front-1")}, client.GracePeriodSeconds(0)))
	w.seen(router, "it is not missed when its pod is gone", proven(1, 1))
}

func TestWhoIsNoReplicaIsToldNothing(t *testing.T) {
	w := newWorld(t)
	foreign := w.pod(named(w.system, "somebody"), "somebody", "10.0.0.2")
	for name, tc := range map[string]struct{ token, want string }{
		"no token":                          {"", "no bearer token"},
		"a token for proxies":               {w.token(w.other.pod, identity.Audience), "another audience"},
		"a token of another account":        {w.token(foreign, discovery.PeerAudience), "may not ask"},
		"a token that somebody has made up": {"x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			failed := make(chan error, 1000)
			follower := peers.Follower{
				TLS: func() (*tls.Config, error) {
					return &tls.Config{RootCAs: w.roots(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}}, nil
				},
				Token:  func() (string, error) { return tc.token, nil },
				Failed: func(_ string, err error) { failed <- err },
			}
			ctx, stop := context.WithCancel(t.Context())
			mirror, done := peers.NewMirror(), make(chan struct{})
			go func() { defer close(done); follower.Follow(ctx, w.leader.address, mirror) }()
			err := <-failed
			stop()
			<-done
			if !strings.Contains(err.Error(), "Unauthenticated") || !strings.Contains(err.Error(), tc.want) || mirror.Heard(time.Now()) {
				t.Errorf("it is told %v", err)
			}
		})
	}
	poll.Until(t, patience, "each is counted", func() error {
		n, err := testutil.GatherAndCount(w.leader.registry, "plumbline_xds_peers_refused_total")
		if err == nil && n != 4 {
			err = fmt.Errorf("%d reasons are counted", n)
		}
		return err
	})
}
