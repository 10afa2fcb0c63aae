// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"slices"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// cycles is how often is shifted.
func cycles() int {
	if long() {
		return 10_000
	}
	return 300
}

// shop is a service behind one proxy.
type shop struct {
	*world
	front    string // where the proxy listens
	a, b     string // backends
	listener *ads.Resource
	sequence uint64
}

// newShop has a proxy that sends all of it to a.
func newShop(t testing.TB) *shop { return newShopWith(t, ads.Config{}) }

func newShopWith(t testing.TB, config ads.Config) *shop {
	s := &shop{world: newWorldWith(t, config), front: freeport.Address(t), a: backend(t, "a"), b: backend(t, "b")}
	s.listener = listener(s.front, "web")
	s.only()
	s.proxy("web-0")
	answersBy(t, s.front, "a")
	return s
}

// only a is there.
func (s *shop) only() *ads.Resource {
	s.sequence++
	r := route("web", s.sequence, share{"web|a", 10_000})
	s.publish(s.listener, cluster("web|a"), endpoints("web|a", s.a), r)
	return r
}

// both are there, and b has a share.
func (s *shop) both(weight uint32) *ads.Resource {
	s.sequence++
	r := route("web", s.sequence, share{"web|b", weight}, share{"web|a", 10_000 - weight})
	s.publish(s.listener, cluster("web|a"), endpoints("web|a", s.a), cluster("web|b"), endpoints("web|b", s.b), r)
	return r
}

// Everything about b is published at once, and taken away at once: to do it in an order
// in which no request is lost is the server's business.
func TestAVariationThatComesAndGoesCostsNoRequest(t *testing.T) {
	s := newShop(t)
	l, talks := startLoad(t, s.front), map[string]*talk{"socket": socket(t, s.front), "stream": stream(t, s.front)}
	for range cycles() {
		s.acknowledged("web-0", s.both(5_000))
		s.acknowledged("web-0", s.only())
		s.gone("web-0", ads.Cluster, "web|b")
		for what, talk := range talks {
			talk.goesOn(t, what)
		}
	}
	for _, what := range []string{"b", "stream b", "socket b"} {
		if l.seen(what) == 0 {
			t.Errorf("%s: b has answered nothing", what)
		}
	}
	l.ended(t)
}

func TestWeightsThatChangeCostNoRequest(t *testing.T) {
	s := newShop(t)
	s.acknowledged("web-0", s.both(100))
	l, talks := startLoad(t, s.front), map[string]*talk{"socket": socket(t, s.front), "stream": stream(t, s.front)}
	var took []time.Duration
	for i := range cycles() {
		r := s.both(uint32(i*37%10_000 + 1))
		begin := time.Now()
		s.acknowledged("web-0", r)
		took = append(took, time.Since(begin))
		for what, talk := range talks {
			talk.goesOn(t, what)
		}
	}
	l.ended(t)
	slices.Sort(took)
	t.Logf("published to acknowledged: p50 %s, p99 %s", took[len(took)/2], took[len(took)*99/100])
}
