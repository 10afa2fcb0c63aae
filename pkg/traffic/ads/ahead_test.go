// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// M6: a proxy that reports a later decision than there is was sent nothing, and nobody was told.
func TestARouteOfALaterDecisionIsTold(t *testing.T) {
	there := &ads.Resource{Type: ads.Route, Name: "web", Version: ads.Version{Sequence: 2, Hash: "b"}}
	next := &ads.Resource{Type: ads.Route, Name: "web", Version: ads.Version{Sequence: 4, Hash: "d"}}
	s := ads.NewStream(ads.Config{}, newProofs(), nothingThere, ads.NewView(there))
	got := s.Receive(time.Unix(0, 0), ads.Request{Type: ads.Route, Subscribe: []string{"web"}, Initial: map[string]string{"web": "3.c"}})
	if d := cmp.Diff([]ads.Effect{ads.Ahead{Route: "web", Version: ads.Version{Sequence: 3, Hash: "c"}}}, got); d != "" {
		t.Errorf("the effects (-want +got):\n%s", d)
	}
	after := ads.NewView(next)
	got = s.Publish(time.Unix(1, 0), after, ads.Diff(ads.NewView(there), after))
	if len(got) != 1 || len(got[0].(ads.Send).Resources) != 1 {
		t.Errorf("above it, it is sent %v", got)
	}
}

// A Service that was deleted leaves a proxy its route. A process that has just begun knows of it
// what the proxy reports.
func TestARouteThatIsGoneAndThatAProxyReportsIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		has  string
		want []ads.Effect
	}{
		"of a decision": {"3.c", []ads.Effect{ads.Ahead{Route: "web", Version: ads.Version{Sequence: 3, Hash: "c"}}}},
		"of none":       {"0.c", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := ads.NewStream(ads.Config{}, newProofs(), nothingThere, ads.NewView())
			got := s.Receive(time.Unix(0, 0), ads.Request{Type: ads.Route, Subscribe: []string{"web"}, Initial: map[string]string{"web": tc.has}})
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("the effects (-want +got):\n%s", d)
			}
		})
	}
}
