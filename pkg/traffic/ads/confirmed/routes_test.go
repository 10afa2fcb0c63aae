// SPDX-License-Identifier: Apache-2.0

package confirmed_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/confirmed"
)

// Of a service with two ports a proxy has to confirm both.
func TestEveryPortCounts(t *testing.T) {
	routes := []string{"shop/web|80", "shop/web|8080"}
	r := confirmed.Replica{Name: "a", Heard: true, Records: map[string]confirmed.Record{"uid-0": {
		Connected: started, Routes: []confirmed.Route{{Name: routes[0], Has: version(7)}, {Name: routes[1], Has: version(6), Why: "waits", About: version(7)}},
	}}}
	all := wanted(1)
	all[0].Routes = routes
	got := confirmed.Judge(confirmed.Question{Now: now, Applied: applied, Wanted: all, Replicas: []confirmed.Replica{r}})
	want := traffic.Observation{Sequence: 6, Knowledge: traffic.Unknown, Wanted: 1, Laggards: []traffic.Laggard{laggard("web-0", 6, "waits", applied[1].At)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The route of a gateway is about all services, and its sequence another one.
func TestAGatewayHasADecisionInARouteAboutMany(t *testing.T) {
	decisions := []confirmed.Applied{{Sequence: 6, At: applied[0].At, Shared: 40}, {Sequence: 7, At: applied[1].At, Shared: 45}}
	unknown := []confirmed.Applied{decisions[0], {Sequence: 7, At: applied[1].At}}
	tests := map[string]struct {
		has     uint64
		applied []confirmed.Applied
		want    uint64
	}{
		"before all of them":                           {39, decisions, 0},
		"with the first one":                           {44, decisions, 6},
		"with the second one":                          {45, decisions, 7},
		"with others that came later":                  {99, decisions, 7},
		"while it is not known which has the last one": {99, unknown, 6},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			gateways := wanted(1)
			gateways[0].Shared = true
			got := confirmed.Judge(confirmed.Question{Now: now, Applied: tc.applied, Wanted: gateways, Replicas: []confirmed.Replica{replica("a", true, connected(time.Hour, has(tc.has)))}})
			if got.Sequence != tc.want || (got.Knowledge == traffic.Proven) != (tc.want == 7) {
				t.Errorf("%+v", got)
			}
			for _, l := range got.Laggards {
				if l.Why != "has not confirmed it yet" {
					t.Error(l.Why)
				}
			}
		})
	}
}

func TestWhyAGatewayHasNotConfirmedIsSaidByItsRoute(t *testing.T) {
	gateways := wanted(1)
	gateways[0].Shared = true
	refused := confirmed.Route{Name: route, Has: version(44), About: version(45), Why: "refuses 45.h: no"}
	got := confirmed.Judge(confirmed.Question{
		Now: now, Applied: []confirmed.Applied{{Sequence: 7, At: applied[1].At, Shared: 45}}, Wanted: gateways,
		Replicas: []confirmed.Replica{replica("a", true, connected(time.Hour, refused))},
	})
	if diff := cmp.Diff([]traffic.Laggard{laggard("web-0", 0, refused.Why, applied[1].At)}, got.Laggards); diff != "" {
		t.Error(diff)
	}
}
