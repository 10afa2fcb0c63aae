// SPDX-License-Identifier: Apache-2.0

package acknowledged_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
)

// Of a service with two ports a proxy has to acknowledge both.
func TestEveryPortCounts(t *testing.T) {
	routes := []string{"shop/web|80", "shop/web|8080"}
	r := acknowledged.Replica{Name: "a", Heard: true, Records: map[string]acknowledged.Record{"uid-0": {
		Connected: started, Routes: []acknowledged.Route{{Name: routes[0], Has: version(7)}, {Name: routes[1], Has: version(6), Why: "waits", About: version(7)}},
	}}}
	all := wanted(1)
	all[0].Routes = routes
	got := acknowledged.Judge(acknowledged.Question{Now: now, Applied: applied, Wanted: all, Replicas: []acknowledged.Replica{r}})
	want := traffic.Observation{Sequence: 6, Knowledge: traffic.Unknown, Wanted: 1, OutOfSync: []traffic.OutOfSync{outOfSync("web-0", 6, "waits", applied[1].At)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The route of a gateway is about all services, and its sequence another one.
func TestAGatewayHasADecisionInARouteAboutMany(t *testing.T) {
	decisions := []acknowledged.Applied{{Sequence: 6, At: applied[0].At, Shared: 40}, {Sequence: 7, At: applied[1].At, Shared: 45}}
	unknown := []acknowledged.Applied{decisions[0], {Sequence: 7, At: applied[1].At}}
	tests := map[string]struct {
		has     uint64
		applied []acknowledged.Applied
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
			got := acknowledged.Judge(acknowledged.Question{Now: now, Applied: tc.applied, Wanted: gateways, Replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, has(tc.has)))}})
			if got.Sequence != tc.want || (got.Knowledge == traffic.Proven) != (tc.want == 7) {
				t.Errorf("%+v", got)
			}
			for _, l := range got.OutOfSync {
				if l.Why != "has not acknowledged it yet" {
					t.Error(l.Why)
				}
			}
		})
	}
}

func TestWhyAGatewayHasNotAcknowledgedIsSaidByItsRoute(t *testing.T) {
	gateways := wanted(1)
	gateways[0].Shared = true
	refused := acknowledged.Route{Name: route, Has: version(44), About: version(45), Why: "refuses 45.h: no"}
	got := acknowledged.Judge(acknowledged.Question{
		Now: now, Applied: []acknowledged.Applied{{Sequence: 7, At: applied[1].At, Shared: 45}}, Wanted: gateways,
		Replicas: []acknowledged.Replica{replica("a", true, connected(time.Hour, refused))},
	})
	if diff := cmp.Diff([]traffic.OutOfSync{outOfSync("web-0", 0, refused.Why, applied[1].At)}, got.OutOfSync); diff != "" {
		t.Error(diff)
	}
}
