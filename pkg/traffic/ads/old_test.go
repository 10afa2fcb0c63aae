// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// M7: a replica that was cut off from the API server took newer endpoints back from proxies that
// came to it from another one.
func TestWhatAProxyReportsIsNotTakenBackByAnOldView(t *testing.T) {
	version := func(sequence uint64, hash string) ads.Version { return ads.Version{Sequence: sequence, Hash: hash} }
	tests := map[string]struct {
		kind      ads.Type
		has       string
		there     *ads.Version // nil when the view has nothing of the name
		old, then string       // what it is sent while the view is old, and after
	}{
		"other endpoints":                {ads.Endpoints, "0.new", new(version(0, "old")), "", "a=0.old"},
		"endpoints that are not there":   {ads.Endpoints, "0.new", nil, "", ""},
		"the same endpoints":             {ads.Endpoints, "0.same", new(version(0, "same")), "", ""},
		"a cluster that is not there":    {ads.Cluster, "0.new", nil, "", ""},
		"a listener that is not there":   {ads.Listener, "0.new", nil, "", "-a"},
		"a route without a decision":     {ads.Route, "0.new", new(version(0, "old")), "", "a=0.old"},
		"a route of an earlier one":      {ads.Route, "6.new", new(version(7, "old")), "a=7.old", ""},
		"a route of the same decision":   {ads.Route, "7.new", new(version(7, "old")), "", "a=7.old"},
		"a version that is none of ours": {ads.Endpoints, "x", new(version(0, "old")), "", "a=0.old"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var resources []*ads.Resource
			if tc.there != nil {
				resources = append(resources, &ads.Resource{Type: tc.kind, Name: "a", Version: *tc.there})
			}
			s := ads.NewStream(ads.Config{}, newProofs(), nothingThere, ads.NewView(resources...))
			s.Age(time.Unix(0, 0), true)
			r := ads.Request{Type: tc.kind, Initial: map[string]string{"a": tc.has}}
			if tc.kind == ads.Endpoints || tc.kind == ads.Route {
				r.Subscribe = []string{"a"}
			}
			if d := cmp.Diff(tc.old, sentBy(s.Receive(time.Unix(0, 0), r))); d != "" {
				t.Errorf("while it is old (-want +got):\n%s", d)
			}
			if d := cmp.Diff("", sentBy(s.Tick(time.Unix(3600, 0)))); d != "" && tc.kind != ads.Route {
				t.Errorf("an hour later (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.then, sentBy(s.Age(time.Unix(3601, 0), false))); d != "" {
				t.Errorf("after that (-want +got):\n%s", d)
			}
		})
	}
}

func TestAProxyThatStartsIsServedByAnOldView(t *testing.T) {
	s := ads.NewStream(ads.Config{}, newProofs(), nothingThere, ads.NewView(&ads.Resource{Type: ads.Endpoints, Name: "a", Version: ads.Version{Hash: "old"}}))
	s.Age(time.Unix(0, 0), true)
	if got := sentBy(s.Receive(time.Unix(0, 0), ads.Request{Type: ads.Endpoints, Subscribe: []string{"a"}})); got != "a=0.old" {
		t.Errorf("it is sent %q", got)
	}
}

// sentBy effects, as name=version and -name.
func sentBy(effects []ads.Effect) string {
	var parts []string
	for _, e := range effects {
		send, is := e.(ads.Send)
		if !is {
			continue
		}
		for _, r := range send.Resources {
			parts = append(parts, fmt.Sprint(r.Name, "=", r.Version))
		}
		for _, name := range send.Removed {
			parts = append(parts, "-"+name)
		}
	}
	return strings.Join(parts, " ")
}
