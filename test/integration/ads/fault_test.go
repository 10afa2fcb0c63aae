// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// answersBy waits until a proxy answers with a name.
func answersBy(t testing.TB, front, want string) {
	t.Helper()
	eventually(t, want+" answers", func() error {
		if name, code := answers(t, front); name != want {
			return fmt.Errorf("%d %s", code, name)
		}
		return nil
	})
}

// Envoy says of a response with one bad route among good ones only that it does not
// take it, and has applied an arbitrary part.
func TestOneRouteThatIsRefusedLeavesTheOthersAlone(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := backend(t, "a"), backend(t, "b")
		fronts := []string{freeport.Address(t), freeport.Address(t), freeport.Address(t)}
		publish := func(sequence uint64, to string, broken bool) (routes []*ads.Resource) {
			all := []*ads.Resource{cluster("a"), endpoints("a", a), cluster("b"), endpoints("b", b)}
			for i, front := range fronts {
				name := fmt.Sprint("web-", i)
				r := route(name, sequence, share{to, 10_000})
				if broken && i == 1 {
					r = route(name, sequence, share{to, 0})
				}
				routes = append(routes, r)
				all = append(all, listener(front, name), r)
			}
			w.publish(all...)
			return routes
		}
		publish(1, "a", false)
		w.proxy("web-0")
		for _, front := range fronts {
			answersBy(t, front, "a")
		}

		routes := publish(2, "b", true)
		for _, i := range []int{0, 2} {
			w.acknowledged("web-0", routes[i])
			answersBy(t, fronts[i], "b")
		}
		answersBy(t, fronts[1], "a")
		eventually(t, "what the proxy says about it is told", func() error {
			if !told(w, func(r ads.Rejected) bool {
				return r.Resource == routes[1] && strings.Contains(r.Message, "Sum of weights")
			}) {
				return errors.New("it is not")
			}
			return nil
		})
		if state := w.stage("web-0", ads.Route, "web-1"); state.Stage != ads.Refused || state.Has.Sequence != 1 {
			t.Errorf("it is shown as %+v", state)
		}
		publish(3, "b", false)
		answersBy(t, fronts[1], "b")
	})
}

// Envoy 1.40 acknowledges no cluster any more while one waits that cannot be built, and
// does not say which.
func TestAClusterThatCannotBeBuiltIsFoundAndTheOthersGoOn(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		s := newShopWith(t, ads.Config{AckDeadline: 3 * time.Second})
		w := s.world
		broken := unbuildable("broken")
		r := route("web", 10, share{"web|b", 10_000})
		w.publish(s.listener, cluster("web|a"), endpoints("web|a", s.a), cluster("web|b"), endpoints("web|b", s.b), broken, endpoints("broken", s.b), r)
		w.acknowledged("web-0", r)
		answersBy(t, s.front, "b")
		eventually(t, "it is told which one it is", func() error {
			rejected := told(w, func(e ads.Rejected) bool { return e.Resource == broken })
			if !rejected && !told(w, func(e ads.Withheld) bool { return e.Cluster == broken }) {
				return fmt.Errorf("it is not; of it is known: %+v", w.stage("web-0", ads.Cluster, "broken"))
			}
			return nil
		})
		more := cluster("more")
		w.publish(s.listener, cluster("web|a"), endpoints("web|a", s.a), cluster("web|b"), endpoints("web|b", s.b), broken, endpoints("broken", s.b), r,
			more, endpoints("more", s.a))
		w.acknowledged("web-0", more)
	})
}

// A starting Envoy opens no listener at all as long as one route or the endpoints of
// one cluster are not there.
func TestAProxyStartsAlthoughSomethingIsMissing(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		w := newWorld(t)
		web, lost := freeport.Address(t), freeport.Address(t)
		w.publish(cluster("a"), endpoints("a", backend(t, "a")), cluster("empty"), listener(web, "web"), route("web", 1, share{"a", 10_000}),
			listener(lost, "lost"))
		w.proxy("web-0")
		answersBy(t, web, "a")
		eventually(t, "what has no route answers 503", func() error {
			if text, code := answers(t, lost); code != 503 {
				return fmt.Errorf("%d %s", code, text)
			}
			return nil
		})
	})
}

// What happens to the server costs no request, and a replica that knows nothing of what
// was acknowledged carries on.
func TestAServerThatIsKilledCostsNoRequest(t *testing.T) {
	s := newShop(t)
	l := startLoad(t, s.front)
	for range 5 {
		s.acknowledged("web-0", s.both(5_000))
		s.grpc.Stop()
		s.proofs.Forget([]ads.Key{{Type: ads.Route, Name: "web"}, {Type: ads.Endpoints, Name: "web|a"}, {Type: ads.Endpoints, Name: "web|b"}, {Type: ads.Cluster, Name: "web|a"}})
		r := s.only() // while it is away
		s.serve()
		s.acknowledged("web-0", r)
		s.gone("web-0", ads.Cluster, "web|b")
	}
	l.ended(t)
}
