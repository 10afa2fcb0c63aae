// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// The answer by which a proxy confirmed a version may be lost with its connection, and
// a replica that was just started has heard of none.
func TestWhatAProxyReportsToHaveCountsAsConfirmed(t *testing.T) {
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
				t.Errorf("told as confirmed (-want +got):\n%s", diff)
			}
			if p.Proven(there) != (tc.want != nil) {
				t.Errorf("it is proven: %v", p.Proven(there))
			}
		})
	}
}
