// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// The pitfalls by their numbers are those of docs/reference/xds-pitfalls.md; here are
// those that are about Envoy as much as about the server.

// stat of a proxy, whose name is a pattern.
func stat(t testing.TB, e *envoy.Envoy, name string) int {
	t.Helper()
	n, err := e.Stat(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPitfall06AnEnvoyIsNotSentAgainWhatItRefuses(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		w := newWorld(t)
		front, a, b := freeport.Address(t), backend(t, "a"), backend(t, "b")
		view := func(r *ads.Resource, backends ...string) []*ads.Resource {
			return []*ads.Resource{listener(front, "web"), cluster("web|a"), endpoints("web|a", backends...), r}
		}
		good, bad := route("web", 1, share{"web|a", 10_000}), route("web", 2, share{"web|a", 0})
		w.publish(view(good, a)...)
		e := w.proxy("web-0")
		w.acknowledged("web-0", good)
		answersBy(t, front, "a")
		for i := range 50 {
			all := view(bad, []string{a, b}[i%2])
			w.publish(all...)
			w.acknowledged("web-0", all[2])
		}
		answersBy(t, front, "b")
		if n := stat(t, e, `http\.in\.rds\.web\.update_rejected`); n != 1 {
			t.Errorf("it has refused the route %d times, want once", n)
		}
		r := route("web", 3, share{"web|a", 10_000})
		w.publish(view(r, a)...)
		w.acknowledged("web-0", r)
	})
}

func TestPitfall21ThousandsOfStepsLeaveAnEnvoyAsLargeAsItWas(t *testing.T) {
	s := newShop(t)
	e := s.proxy("web-1")
	run := func(n int) int {
		var last *ads.Resource
		for i := range n { // without waiting, as a controller that goes wild would
			last = s.both(uint32(i%9_999 + 1)) //nolint:gosec // small
			s.publish(s.withBoth(last)...)     // the same once more
		}
		s.acknowledged("web-1", last)
		return allocated(t, e)
	}
	before := run(500)
	after := run(5_000)
	updates := stat(t, e, `http\.in\.rds\.web\.update_success`)
	t.Logf("%d bytes before 5,000 steps, %d after; %d of 5,500 reached it", before, after, updates)
	if grown := after - before; grown > 4<<20 {
		t.Errorf("it has grown by %d bytes", grown)
	}
	if updates > 5_500 {
		t.Errorf("it was sent %d versions of 5,500", updates)
	}
}

// withBoth is what both publishes, with a route that was made before.
func (s *shop) withBoth(r *ads.Resource) []*ads.Resource {
	return []*ads.Resource{s.listener, cluster("web|a"), endpoints("web|a", s.a), cluster("web|b"), endpoints("web|b", s.b), r}
}

// allocated is what a proxy has of memory.
func allocated(t testing.TB, e *envoy.Envoy) int {
	t.Helper()
	text, err := e.Get(t.Context(), "/memory")
	if err != nil {
		t.Fatal(err)
	}
	var memory struct{ Allocated string }
	if err := json.Unmarshal([]byte(text), &memory); err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(memory.Allocated)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// unbuildable is a cluster that Envoy neither builds nor refuses.
func unbuildable(name string) *ads.Resource {
	return resource(ads.Cluster, name, 0, &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: fromADS()},
		LbPolicy:         clusterv3.Cluster_RING_HASH,
		LbConfig: &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{
			MinimumRingSize: wrapperspb.UInt64(2048), MaximumRingSize: wrapperspb.UInt64(1024),
		}},
	})
}

// A proxy that is stuck with a cluster when its stream ends asks for none on the next.
func TestPitfall22AnEnvoyThatIsStuckWhenItComesBackGetsItsClusters(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		s := newShopWith(t, ads.Config{AckDeadline: 5 * time.Second})
		e := s.proxy("web-1")
		s.acknowledged("web-1", s.only())
		stuck := func(r *ads.Resource) []*ads.Resource {
			return append(s.withBoth(r), unbuildable("broken"), endpoints("broken", s.b))
		}
		first := route("web", 100, share{"web|b", 10_000})
		s.publish(stuck(first)...)
		s.acknowledged("web-1", first)
		warming := func() int { return stat(t, e, `cluster_manager\.warming_clusters`) }
		eventually(t, "a cluster is stuck", func() error {
			if warming() == 0 {
				return errors.New("none is")
			}
			return nil
		})
		s.grpc.Stop()
		s.serve()
		more := cluster("more")
		second := route("web", 101, share{"more", 10_000})
		s.publish(append(stuck(second), more, endpoints("more", s.a))...)
		s.acknowledged("web-1", second)
		answersBy(t, s.front, "a")
		eventually(t, "none is stuck any more", func() error {
			if n := warming(); n != 0 {
				return fmt.Errorf("%d are, and of it is known %+v", n, s.stage("web-1", ads.Cluster, "broken"))
			}
			return nil
		})
	})
}

func TestPitfall23OfTwelveAssignmentsInOneResponseTheBadOneIsLeftOut(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		const all, bad = 12, 5
		w := newWorld(t)
		a, b := backend(t, "a"), backend(t, "b")
		publish := func(to string, broken bool) (sent []*ads.Resource) {
			var view []*ads.Resource
			for i := range all {
				name, address := fmt.Sprint("web|", i), to
				if broken && i == bad {
					address = "not-an-ip:80"
				}
				ends := endpoints(name, address)
				w.proofs.Prove(ends) // as if others had taken it: so they travel together
				sent, view = append(sent, ends), append(view, cluster(name), ends)
			}
			w.publish(view...)
			return sent
		}
		for _, r := range publish(a, false) {
			w.proofs.Prove(r)
		}
		e := w.proxy("web-0")
		for _, r := range publish(a, false) {
			w.acknowledged("web-0", r)
		}
		sent := publish(b, true)
		for i, r := range sent {
			if i != bad {
				w.acknowledged("web-0", r)
			}
		}
		has := dumped(t, e)
		for i, r := range sent {
			want := b
			if i == bad {
				want = a
			}
			if text := "Endpoints " + r.Name + " " + want; !slices.Contains(has, text) {
				t.Errorf("it has not %q, but %q", text, has)
			}
		}
		eventually(t, "it is told which one it is, and why", func() error {
			if !told(w, func(r ads.Rejected) bool {
				return r.Resource.Name == sent[bad].Name && strings.Contains(r.Message, "malformed IP address")
			}) {
				return errors.New("it is not")
			}
			return nil
		})
	})
}
