// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// The answer by which a proxy acknowledged a version may be lost with its connection, and
// a replica that was just started has heard of none.
func TestWhatAProxyReportsToHaveCountsAsAcknowledged(t *testing.T) {
	there := &ads.Resource{Type: ads.Route, Name: "web", Version: ads.Version{Sequence: 2, Hash: "b"}}
	tests := map[string]struct {
		reports string
		want    []*ads.Resource
	}{
		"the version that there is":      {"2.b", []*ads.Resource{there}},
		"an older one":                   {"1.a", nil},
		"one of a later decision":        {"3.c", nil},
		"what stands for nothing":        {"0.none", nil},
		"a version that is none of ours": {"x", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProofs()
			s := ads.NewStream(ads.Config{}, p, nothingThere, ads.NewView(there))
			var acked []*ads.Resource
			for range 2 { // it is told once
				for _, e := range s.Receive(time.Unix(0, 0), ads.Request{Type: ads.Route, Subscribe: []string{"web"}, Initial: map[string]string{"web": tc.reports}}) {
					if a, is := e.(ads.Acked); is {
						acked = append(acked, a.Resources...)
					}
				}
			}
			if diff := cmp.Diff(tc.want, acked); diff != "" {
				t.Errorf("told as acknowledged (-want +got):\n%s", diff)
			}
			if p.Proven(there) != (tc.want != nil) {
				t.Errorf("it is proven: %v", p.Proven(there))
			}
		})
	}
}

// Envoy acknowledges a response with a cluster that it cannot build when that one is taken
// away again. If that counted, every other proxy would be left stuck with it.
func TestAClusterThatWasTakenAwayIsNotAcknowledgedByTheAnswerThatComesThen(t *testing.T) {
	broken, good := of(ads.Cluster, "broken", "1"), of(ads.Cluster, "good", "1")
	s := newScript(t, broken, good, of(ads.Endpoints, "good", "1"))
	late := s.ask(ads.Cluster)
	s.acknowledge(s.ask(ads.Route, "none")...)
	s.acknowledge(s.ask(ads.Endpoints, "good")...)
	away := s.pass(time.Minute)
	s.want("it is taken away", away, "Cluster -broken")
	s.acknowledge(append(late, away...)...)
	if s.proofs.Proven(broken) || !s.proofs.Proven(good) {
		t.Errorf("proven are broken: %v, good: %v", s.proofs.Proven(broken), s.proofs.Proven(good))
	}
	var told []ads.Effect
	for _, e := range s.told {
		switch e.(type) {
		case ads.Withheld, ads.Acked:
			told = append(told, e)
		}
	}
	want := []ads.Effect{ads.Acked{Resources: []*ads.Resource{of(ads.Endpoints, "good", "1")}}, ads.Withheld{Cluster: broken}, ads.Acked{Resources: []*ads.Resource{good}}}
	if diff := cmp.Diff(want, told[len(told)-3:]); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
