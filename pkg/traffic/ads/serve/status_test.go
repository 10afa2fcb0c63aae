// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

func names(page []serve.Connected) string {
	var pods []string
	for i := range page {
		pods = append(pods, page[i].Pod)
	}
	return strings.Join(pods, " ")
}

func TestProxiesAreShownPageByPage(t *testing.T) {
	w := newWorld(t, serve.Config{})
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "1"), resource(ads.Listener, "l", "1")))
	for _, pod := range []string{"web-2", "web-0", "web-1", "web-1", "web-3"} {
		p := w.connect(pod)
		p.ask(ads.Cluster)
		p.gets()
	}
	tests := map[string]struct {
		query serve.Query
		want  string
		more  bool
	}{
		"all of them":                          {serve.Query{}, "web-0 web-1 web-1 web-2 web-3", false},
		"the first":                            {serve.Query{Limit: 1}, "web-0", true},
		"the streams of one pod stay together": {serve.Query{Limit: 2}, "web-0 web-1 web-1", true},
		"behind a place":                       {serve.Query{Limit: 2, After: serve.Place{Namespace: "shop", Pod: "web-1"}}, "web-2 web-3", false},
		"behind one that is gone":              {serve.Query{Limit: 1, After: serve.Place{Namespace: "shop", Pod: "web-11"}}, "web-2", true},
		"behind the last":                      {serve.Query{After: serve.Place{Namespace: "shop", Pod: "web-3"}}, "", false},
		"those that are wanted":                {serve.Query{Keep: func(p identity.Proxy) bool { return p.Pod == "web-3" }}, "web-3", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			page, more := w.server.Page(t.Context(), tc.query)
			if names(page) != tc.want || more != tc.more {
				t.Errorf("got %q, more %v; want %q, more %v", names(page), more, tc.want, tc.more)
			}
		})
	}
}

func TestResourcesAreCountedAndListedOnlyIfAskedFor(t *testing.T) {
	w := newWorld(t, serve.Config{})
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "1"), resource(ads.Cluster, "b", "1")))
	p := w.connect("web-0")
	p.ask(ads.Cluster)
	p.gets()
	p.ask(ads.Route, "none") // its answer says that the one before was read
	p.gets()
	of := func(k ads.Key) bool { return k.Type == ads.Cluster && k.Name != "b" }
	page, _ := w.server.Page(t.Context(), serve.Query{Of: of})
	if diff := cmp.Diff(map[ads.Stage]int{ads.Acknowledged: 1}, page[0].Counts); diff != "" || page[0].Resources != nil || page[0].Since.IsZero() {
		t.Errorf("it is %+v, counts (-want +got):\n%s", page[0], diff)
	}
	page, _ = w.server.Page(t.Context(), serve.Query{Of: of, Details: true})
	if len(page[0].Resources) != 1 || page[0].Resources[0].Name != "a" {
		t.Errorf("its resources are %+v", page[0].Resources)
	}
}

func TestAProxyThatHasAskedForNothingIsShownAsWaiting(t *testing.T) {
	w := newWorld(t, serve.Config{})
	w.connect("quiet")
	for {
		if page, _ := w.server.Page(t.Context(), serve.Query{}); len(page) == 1 {
			if !page[0].Waiting || page[0].Blocked || page[0].Pod != "quiet" {
				t.Errorf("it is shown as %+v", page[0])
			}
			return
		}
	}
}
