// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// H1 of the review of the mesh, of a Service that comes: a proxy that ran was given the route that
// answers 503 for its new listener, until the endpoints were acknowledged. Without any route the
// listener warms, and connections pass as before.
func TestARouteOfAServiceThatComesWaitsForItsEndpoints(t *testing.T) {
	of := func(name string) []*ads.Resource {
		return []*ads.Resource{of(ads.Cluster, name, "1"), of(ads.Endpoints, name, "1"), of(ads.Listener, name, "1"), of(ads.Route, name, "1", name)}
	}
	tests := map[string][]*ads.Resource{"a proxy that runs, with a Service": of("web"), "a proxy that runs, without any yet": nil}
	for name, had := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, had...)
			s.acknowledge(s.ask(ads.Cluster)...)
			s.acknowledge(s.ask(ads.Listener)...)
			if had != nil {
				s.acknowledge(s.ask(ads.Endpoints, "web")...)
				s.acknowledge(s.ask(ads.Route, "web")...)
			}
			for _, send := range s.publish(append(had, of("pay")...)...) {
				if send.Type == ads.Listener { // clusters are acknowledged when they are warm
					s.acknowledge(send)
				}
			}
			s.want("its listener is there, and endpoints are not", s.receive(ads.Request{Type: ads.Route, Subscribe: []string{"pay"}}), "")
			ends := s.receive(ads.Request{Type: ads.Endpoints, Subscribe: []string{"pay"}})
			s.want("endpoints", ends, "Endpoints pay=1")
			s.want("they are acknowledged", s.acknowledge(ends...), "Route pay=1")
		})
	}
}
