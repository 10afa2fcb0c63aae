// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// behind are the proxies that have not acknowledged a route.
func (w *world) behind(r *ads.Resource) (pods []string) {
	w.mu.Lock()
	s := w.server
	w.mu.Unlock()
	for _, p := range s.Proxies(w.t.Context(), func(identity.Proxy) bool { return true }) {
		if !slices.ContainsFunc(p.Resources, func(state ads.State) bool {
			return state.Type == r.Type && state.Name == r.Name && state.Stage == ads.Acknowledged && state.Has == r.Version
		}) {
			pods = append(pods, p.Pod)
		}
	}
	return pods
}

// As long as one stands still each step is acknowledged by all others and by it alone is
// not; when it goes on it gets the last step, and nothing that lies between.
func TestAStoppedProxyIsNamedAtEachStepAndHoldsNobodyUp(t *testing.T) {
	const others, stopped = 3, "web-stopped"
	s := newShop(t)
	for i := range others {
		s.proxy(fmt.Sprint("web-", i+1))
	}
	slow, front := s.proxy(stopped), freeport.Address(t)
	s.proxyAt("web-9", front, "web")
	s.acknowledged(stopped, s.both(100))
	answersBy(t, front, "a")
	slow.Signal(syscall.SIGSTOP)
	l := startLoad(t, front)
	var last *ads.Resource
	for step := range 50 {
		last = s.both(uint32(200 + step))
		for i := range others + 1 {
			s.acknowledged(fmt.Sprint("web-", i), last)
		}
		s.acknowledged("web-9", last)
		if pods := s.behind(last); !slices.Equal(pods, []string{stopped}) {
			t.Fatalf("behind are %v", pods)
		}
	}
	l.ended(t)
	state := s.stage(stopped, ads.Route, "web")
	if state.Stage != ads.OnTheWay || state.Has.Sequence >= last.Version.Sequence || state.Wants != last.Version {
		t.Errorf("it is shown as %+v", state)
	}
	updates := func() int {
		n, err := slow.Stat(t.Context(), `http\.in\.rds\.web\.update_success`)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	slow.Signal(syscall.SIGCONT)
	before := updates()
	s.acknowledged(stopped, last)
	if pods := s.behind(last); len(pods) > 0 {
		t.Errorf("behind are still %v", pods)
	}
	if n := updates() - before; n > 3 {
		t.Errorf("it is sent %d of the 50 steps, want the first and the last", n)
	}
}

// The server hears nothing of one for forty seconds and ends its stream; when it goes on
// it comes back, and says what it has.
func TestAProxyThatStandsStillForLongComesBack(t *testing.T) {
	if !long() {
		t.Skip("it takes a minute; PLUMBLINE_XDS=long runs it (make xds-long)")
	}
	s := newShop(t)
	slow := s.proxy("web-1")
	s.acknowledged("web-1", s.both(100))
	slow.Signal(syscall.SIGSTOP)
	s.acknowledged("web-0", s.both(200))
	poll.Until(t, 2*patience, "its stream has ended", func() error {
		if s.stage("web-1", ads.Route, "web") != (ads.State{}) {
			return errors.New("it has not")
		}
		return nil
	})
	r := s.both(300)
	s.acknowledged("web-0", r)
	slow.Signal(syscall.SIGCONT)
	s.acknowledged("web-1", r)
}

// large is a cluster of a megabyte.
func large(name, content string) *ads.Resource {
	note, err := structpb.NewStruct(map[string]any{"note": content + strings.Repeat("x", 1<<20)})
	if err != nil {
		panic(err)
	}
	return resource(ads.Cluster, name, 0, &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"large": note}},
	})
}

// With the window that is the default a proxy is never sent so much that it could not be
// written; without it, a slow reader blocks its own stream and no other.
func TestASlowReaderIsShownToBeBlockedAndHoldsNobodyUp(t *testing.T) {
	s := newShopWith(t, ads.Config{Window: 1 << 30})
	slow := s.proxy("web-slow")
	s.acknowledged("web-slow", s.only())
	slow.Signal(syscall.SIGSTOP)
	var last *ads.Resource
	more := func(n int) []*ads.Resource {
		s.sequence++
		last = route("web", s.sequence, share{"web|a", 10_000})
		all := []*ads.Resource{s.listener, cluster("web|a"), endpoints("web|a", s.a), last}
		for i := range 40 {
			c := large(fmt.Sprint("large-", i), fmt.Sprint(n))
			c.Inline = true
			all = append(all, c)
		}
		return all
	}
	blocked := func() bool {
		proxies := s.server.Proxies(t.Context(), func(p identity.Proxy) bool { return p.Pod == "web-slow" })
		return slices.ContainsFunc(proxies, func(p serve.Connected) bool { return p.Blocked && len(p.Resources) == 0 })
	}
	for n := 0; n == 0 || !blocked(); n++ {
		if n == 20 {
			t.Fatal("800 megabytes do not block it")
		}
		s.publish(more(n)...)
		s.acknowledged("web-0", last)
	}
	if pods := s.behind(last); !slices.Equal(pods, []string{"web-slow"}) {
		t.Errorf("behind are %v", pods)
	}
	r := s.only() // all that is large is gone before it is read
	s.acknowledged("web-0", r)
	slow.Signal(syscall.SIGCONT)
	s.acknowledged("web-slow", r)
	s.gone("web-slow", ads.Cluster, "large-0")
}
