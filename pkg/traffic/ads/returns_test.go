// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// A proxy acknowledges a cluster, which then goes and comes back while its removal is on the
// way. The window is full, so the cluster cannot be sent again yet.
func TestARouteWaitsForAClusterWhoseRemovalIsOnTheWay(t *testing.T) {
	inline := func(name, hash string) *ads.Resource {
		r := of(ads.Cluster, name, hash)
		r.Inline = true
		return r
	}
	stable, canary := inline("stable", "1"), inline("canary", "1")
	s := &script{t: t, now: time.Unix(1_800_000_000, 0), view: ads.NewView(stable, canary, of(ads.Route, "web", "1", "stable")), proofs: newProofs()}
	s.stream = ads.NewStream(ads.Config{Window: 4}, s.proofs, nothingThere, s.view)
	s.acknowledge(s.ask(ads.Cluster)...)
	s.acknowledge(s.ask(ads.Route, "web")...)

	removal := s.publish(stable, of(ads.Route, "web", "1", "stable"))
	s.want("the cluster goes", removal, "Cluster -canary")
	large := inline("big", "larger than the window")
	s.want("it comes back, and the route names it", s.publish(stable, large, canary, of(ads.Route, "web", "2", "canary", "stable")), "")
	if stage := s.stage(ads.Route, "web"); stage != ads.Held {
		t.Errorf("the route is %s", stage)
	}
	s.want("it is sent again once the proxy has removed it", s.receive(ads.Request{Type: ads.Cluster, Nonce: removal[0].Nonce}), "Cluster big=larger than the window canary=1; Route web=2")
}

func TestAListenerThatComesBackWhileItsRemovalIsOnTheWayIsSentAgain(t *testing.T) {
	inbound, outbound := of(ads.Listener, "inbound", "1"), of(ads.Listener, "outbound", "1")
	s := newScript(t, inbound, outbound)
	s.acknowledge(s.ask(ads.Listener)...)
	removal := s.publish(inbound)
	s.want("it goes", removal, "Listener -outbound")
	s.want("it comes back before the proxy has answered", s.publish(inbound, outbound), "")
	s.want("the proxy has removed it", s.acknowledge(removal...), "Listener outbound=1")
}

func TestAVersionOfAnEnvoyIsReadIfItIsOneOfOurs(t *testing.T) {
	for text, want := range map[string]ads.Version{
		"0.a": {Hash: "a"}, "1.a": {Sequence: 1, Hash: "a"}, "20.a.b": {Sequence: 20, Hash: "a.b"},
		"": {}, "a": {}, "1": {}, "1.": {}, ".a": {}, "-1.a": {}, "01.a": {}, "1 .a": {}, "18446744073709551616.a": {},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := ads.ParseVersion(text)
			if got != want || (err == nil) != (want != ads.Version{}) {
				t.Errorf("it is %+v, want %+v; the error is %v", got, want, err)
			}
		})
	}
}

func TestARouteWithTheNameOfAClusterOnItsWayIsNotSentTwice(t *testing.T) {
	s := newScript(t, of(ads.Cluster, "web", "2"), of(ads.Route, "web", "1"))
	s.want("the cluster is on its way", s.receive(ads.Request{Type: ads.Cluster, Initial: map[string]string{"web": "0.1"}}), "Cluster web=2")
	s.want("the proxy has the route", s.receive(ads.Request{Type: ads.Route, Subscribe: []string{"web"}, Initial: map[string]string{"web": "0.1"}}), "")
}

// A proxy that starts opens no listener without a route. It refuses the one that answers
// 503, so it gets the one whose cluster has no endpoints yet.
func TestAProxyThatRefusesTheStandInGetsItsRoute(t *testing.T) {
	s := newScript(t, of(ads.Cluster, "canary", "1"), of(ads.Endpoints, "canary", "1"), of(ads.Route, "web", "1", "canary"))
	s.acknowledge(s.ask(ads.Cluster)...)
	first := s.ask(ads.Route, "web")
	s.want("before there are endpoints", first, "Route web=none")
	s.want("instead of the one that it refuses", s.refuse(first[0], "no such action"), "Route web=1")
	s.wantLate("instead of the one that it refuses", "web=1")
}
