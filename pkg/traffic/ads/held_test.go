// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// toldLate are the routes that were told to be late.
func (s *script) toldLate() (late []string) {
	for _, e := range s.told {
		if l, is := e.(ads.Late); is {
			late = append(late, l.Route.Name+"="+l.Route.Version.Hash)
		}
	}
	return late
}

func (s *script) wantLate(what string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.toldLate()); diff != "" {
		s.t.Errorf("%s: told as late (-want +got):\n%s", what, diff)
	}
}

// held is a proxy whose route to a canary waits for endpoints that it never asks for.
func held(t *testing.T) *script {
	stable := []*ads.Resource{of(ads.Cluster, "stable", "1"), of(ads.Endpoints, "stable", "1")}
	s := newScript(t, append(stable, of(ads.Route, "web", "1", "stable"))...)
	s.acknowledge(s.ask(ads.Cluster)...)
	s.acknowledge(s.ask(ads.Endpoints, "stable")...)
	s.acknowledge(s.ask(ads.Route, "web")...)
	cluster := s.publish(append(stable, of(ads.Cluster, "canary", "1"), of(ads.Endpoints, "canary", "1"), of(ads.Route, "web", "2", "stable", "canary"))...)
	s.want("the cluster goes ahead", cluster, "Cluster canary=1")
	s.acknowledge(cluster...)
	if stage := s.stage(ads.Route, "web"); stage != ads.Held {
		t.Fatalf("the route is %s", stage)
	}
	return s
}

func TestAHeldRouteGoesAfterFiveSecondsAndIsToldToBeLate(t *testing.T) {
	s := held(t)
	if next := s.stream.Next().Sub(s.now); next != 5*time.Second {
		t.Errorf("the stream is to be woken in %s", next)
	}
	s.want("before five seconds", s.pass(4_999*time.Millisecond), "")
	s.wantLate("before five seconds")
	late := s.pass(time.Millisecond)
	s.want("after five seconds", late, "Route web=2")
	s.wantLate("after five seconds", "web=2")
	s.acknowledge(late...)
	s.want("once", s.pass(time.Minute), "")
	s.wantLate("once", "web=2")
}

func TestARouteWhoseEndpointsComeInTimeIsNotLate(t *testing.T) {
	s := held(t)
	s.want("for a while", s.pass(4_999*time.Millisecond), "")
	s.want("the endpoints are acknowledged", s.acknowledge(s.ask(ads.Endpoints, "canary")...), "Route web=2")
	s.wantLate("never")
}

// A proxy that starts opens no listener before it has all its routes.
func TestTheFirstRouteOfANewStreamIsNeverHeld(t *testing.T) {
	const wanted = 5
	version := func(sequence uint64, hash string, clusters ...string) *ads.Resource {
		r := of(ads.Route, "web", hash, clusters...)
		r.Version.Sequence = sequence
		return r
	}
	tests := map[string]struct {
		// acknowledged by other proxies, in this order.
		acknowledged []*ads.Resource
		initial      map[string]string
		want         string
	}{
		"it is the last one that another proxy has acknowledged": {acknowledged: []*ads.Resource{version(3, "before", "stable"), version(4, "last", "stable")}, want: "Route web=last"},
		"or a 503 if none has":                          {want: "Route web=none"},
		"or if that names what has no endpoints either": {acknowledged: []*ads.Resource{version(4, "last", "canary")}, want: "Route web=none"},
		"or what is not there any more":                 {acknowledged: []*ads.Resource{version(4, "last", "former")}, want: "Route web=none"},
		"or if that is of a later decision":             {acknowledged: []*ads.Resource{version(6, "later", "stable")}, want: "Route web=none"},
		"who comes back with one keeps that meanwhile":  {initial: map[string]string{"web": "4.last"}, acknowledged: []*ads.Resource{version(4, "last", "stable")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, of(ads.Cluster, "stable", "1"), of(ads.Endpoints, "stable", "1"),
				of(ads.Cluster, "canary", "1"), of(ads.Endpoints, "canary", "1"), version(wanted, "new", "stable", "canary"))
			for _, r := range tc.acknowledged {
				s.proofs.Prove(r)
			}
			s.acknowledge(s.ask(ads.Cluster)...)
			s.acknowledge(s.ask(ads.Endpoints, "stable")...)
			first := s.receive(ads.Request{Type: ads.Route, Subscribe: []string{"web"}, Initial: tc.initial})
			s.want("at once", first, tc.want)
			s.acknowledge(first...)
			s.wantLate("at once")
			s.want("with the endpoints", s.acknowledge(s.ask(ads.Endpoints, "canary")...), "Route web=new")
		})
	}
}

// Found by the fuzzer: the proxy wants all endpoints, left a name that was not there, and
// is told so, which counted as having the endpoints that came then.
func TestToKnowOfNoEndpointsIsNotToHaveThem(t *testing.T) {
	stable := []*ads.Resource{of(ads.Cluster, "stable", "1"), of(ads.Endpoints, "stable", "1")}
	s := newScript(t, append(stable, of(ads.Route, "web", "1", "stable"))...)
	s.acknowledge(s.ask(ads.Cluster)...)
	s.acknowledge(s.ask(ads.Endpoints, "*", "canary")...)
	s.acknowledge(s.ask(ads.Route, "web")...)
	s.want("it is told", s.receive(ads.Request{Type: ads.Endpoints, Unsubscribe: []string{"canary"}}), "Endpoints -canary")
	s.want("the route waits", s.publish(append(stable, of(ads.Cluster, "canary", "1"), of(ads.Endpoints, "canary", "1"), of(ads.Route, "web", "2", "stable", "canary"))...), "Cluster canary=1")
}
