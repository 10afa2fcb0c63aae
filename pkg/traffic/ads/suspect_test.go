// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"slices"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// A proxy answers, but acknowledges no cluster: one of them cannot be built.
func TestOnlyAClusterThatMayBeStuckIsTakenAwayOnTrial(t *testing.T) {
	proven, routed, waiting := of(ads.Cluster, "a-proven", "1"), of(ads.Cluster, "b-routed", "1"), of(ads.Cluster, "c-waiting", "1")
	routed.Inline = true
	s := newScript(t, proven, routed, waiting, of(ads.Cluster, "d-free", "1"), of(ads.Cluster, "e-free", "1"),
		of(ads.Endpoints, "c-waiting", "1"), of(ads.Route, "web", "1", "b-routed"))
	s.proofs.Prove(proven)
	s.want("all are on their way", s.ask(ads.Cluster), "Cluster a-proven=1 b-routed=1 c-waiting=1 d-free=1 e-free=1")
	s.want("one waits for its endpoints", s.ask(ads.Endpoints, "c-waiting"), "Endpoints c-waiting=1")
	route := s.ask(ads.Route, "web")
	s.want("a route names one", route, "Route web=1")
	s.acknowledge(route...)

	s.want("for half a minute the proxy may be slow", s.pass(30*time.Second-1), "")
	s.want("then the first one goes", s.pass(1), "Cluster -d-free")
	s.want("for a second the proxy may answer", s.pass(time.Second-1), "")
	s.want("then the next one goes", s.pass(1), "Cluster -e-free")
	s.want("it is neither, so both come back", s.pass(time.Second), "Cluster d-free=1; Cluster e-free=1")
	s.want("and are not suspected again", s.pass(time.Minute), "")
}

func TestARouteWaitsForTheEndpointsOfAClusterThatComesBack(t *testing.T) {
	stable := []*ads.Resource{of(ads.Cluster, "stable", "1"), of(ads.Endpoints, "stable", "1")}
	cluster, ends := of(ads.Cluster, "canary", "1"), of(ads.Endpoints, "canary", "1")
	for name, stay := range map[string][]*ads.Resource{"that went with it": nil, "that stayed": {ends}} {
		t.Run(name, func(t *testing.T) {
			with := func(more ...*ads.Resource) []*ads.Resource { return append(slices.Clone(stable), more...) }
			s := newScript(t, with(cluster, ends, of(ads.Route, "web", "1", "stable"))...)
			s.acknowledge(s.ask(ads.Cluster)...)
			s.acknowledge(s.ask(ads.Endpoints, "stable", "canary")...)
			s.acknowledge(s.ask(ads.Route, "web")...)
			s.acknowledge(s.publish(with(append(stay, of(ads.Route, "web", "1", "stable"))...)...)...)
			back := s.publish(with(cluster, ends, of(ads.Route, "web", "2", "stable", "canary"))...)
			s.want("the cluster and its endpoints come back", back, "Cluster canary=1; Endpoints canary=1")
			s.want("then the route", s.acknowledge(back...), "Route web=2")
		})
	}
}

func TestANameThatIsGoneIsForgotten(t *testing.T) {
	s := newScript(t, of(ads.Listener, "inbound", "1"), of(ads.Listener, "outbound", "1"))
	s.acknowledge(s.ask(ads.Listener)...)
	s.acknowledge(s.publish(of(ads.Listener, "inbound", "1"))...)
	if stage := s.stage(ads.Listener, "outbound"); stage != "" {
		t.Errorf("it is %s", stage)
	}
}

func TestTheAnswerToARemovalOfANameThatIsNoLongerWantedChangesNothing(t *testing.T) {
	s := newScript(t, of(ads.Listener, "inbound", "1"), of(ads.Listener, "outbound", "1"))
	s.acknowledge(s.ask(ads.Listener)...)
	removal := s.publish(of(ads.Listener, "inbound", "1"))
	s.want("it goes", removal, "Listener -outbound")
	s.want("the proxy wants no listeners", s.receive(ads.Request{Type: ads.Listener, Unsubscribe: []string{"*"}}), "")
	s.want("it has removed it", s.acknowledge(removal...), "")
}

func TestTheRefusalOfAnOlderResponseIsNoneOfTheNewerOne(t *testing.T) {
	s := newScript(t, of(ads.Route, "web", "1"))
	older := s.ask(ads.Route, "web")
	newer := s.ask(ads.Route, "web")
	s.want("who asks again is answered again", newer, "Route web=1")
	s.want("the older one is refused", s.refuse(older[0], "not now"), "")
	if stage := s.stage(ads.Route, "web"); stage != ads.OnTheWay {
		t.Errorf("it is %s", stage)
	}
	s.acknowledge(newer...)
	if stage := s.stage(ads.Route, "web"); stage != ads.Acknowledged {
		t.Errorf("it is %s", stage)
	}
}

// A response may be without an answer for thirty seconds, a route waits for five.
func TestAStreamIsWokenForWhateverIsDueFirst(t *testing.T) {
	s := held(t)
	s.want("one more cluster, without an answer", s.publish(of(ads.Cluster, "stable", "1"), of(ads.Endpoints, "stable", "1"), of(ads.Cluster, "canary", "1"),
		of(ads.Endpoints, "canary", "1"), of(ads.Cluster, "third", "1"), of(ads.Route, "web", "2", "stable", "canary")), "Cluster third=1")
	if next := s.stream.Next().Sub(s.now); next != 5*time.Second {
		t.Errorf("the stream is to be woken in %s", next)
	}
}
