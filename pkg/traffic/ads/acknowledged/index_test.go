// SPDX-License-Identifier: Apache-2.0

package acknowledged_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
)

var web = acknowledged.Proxy{UID: "uid-0", Namespace: "shop", Pod: "web-0"}

func routeOf(name string, sequence uint64) *ads.Resource {
	return &ads.Resource{Type: ads.Route, Name: name, Version: version(sequence)}
}

func acked(resources ...*ads.Resource) ads.Acked { return ads.Acked{Resources: resources} }

func TestWhatAProxyHas(t *testing.T) {
	at := func(second int) time.Time { return now.Add(time.Duration(second) * time.Second) }
	tests := map[string]struct {
		happens func(x *acknowledged.Index)
		want    acknowledged.Record
	}{
		"what it acknowledges": {
			func(x *acknowledged.Index) { x.Happened(web, acked(routeOf("a", 7), routeOf("b", 3))) },
			acknowledged.Record{Connected: now, Routes: []acknowledged.Route{{Name: "a", Has: version(7)}, {Name: "b", Has: version(3)}}},
		},
		"nothing of what nobody decides about": {
			func(x *acknowledged.Index) {
				x.Happened(web, acked(routeOf("a", 0), &ads.Resource{Type: ads.Cluster, Name: "c", Version: version(7)}))
			},
			acknowledged.Record{Connected: now},
		},
		"what it had before, and why it refuses what came then": {
			func(x *acknowledged.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Happened(web, ads.Rejected{Resource: routeOf("a", 8), Message: "no"})
			},
			acknowledged.Record{Connected: now, Routes: []acknowledged.Route{{Name: "a", Has: version(7), About: version(8), Why: "refuses 8.h: no"}}},
		},
		"what is on the way, also of what it has never had": {
			func(x *acknowledged.Index) { x.Happened(web, ads.Send{Resources: []*ads.Resource{routeOf("a", 1)}}) },
			acknowledged.Record{Connected: now, Routes: []acknowledged.Route{{Name: "a", About: version(1), Why: "was sent 1.h, and has not answered"}}},
		},
		"nothing against it once it is acknowledged": {
			func(x *acknowledged.Index) {
				x.Happened(web, ads.Late{Route: routeOf("a", 8)})
				x.Happened(web, acked(routeOf("a", 8)))
			},
			acknowledged.Record{Connected: now, Routes: []acknowledged.Route{{Name: "a", Has: version(8)}}},
		},
		"what is said about what it waits for": {
			func(x *acknowledged.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Explain(web.UID, "a", version(8), "waits for endpoints")
			},
			acknowledged.Record{Connected: now, Routes: []acknowledged.Route{{Name: "a", Has: version(7), About: version(8), Why: "waits for endpoints"}}},
		},
		"a long text in short": {
			func(x *acknowledged.Index) {
				x.Explain(web.UID, "a", version(8), strings.Repeat("é", 5000))
			},
			acknowledged.Record{Connected: now, Routes: []acknowledged.Route{{Name: "a", About: version(8), Why: strings.Repeat("é", 256) + "…"}}},
		},
		"that it has left, and what it had": {
			func(x *acknowledged.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Closed(web, at(5))
			},
			acknowledged.Record{Connected: now, Left: at(5), Routes: []acknowledged.Route{{Name: "a", Has: version(7), Former: at(5)}}},
		},
		"that it is back, and has not reported": {
			func(x *acknowledged.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Closed(web, at(5))
				x.Opened(web, at(6))
			},
			acknowledged.Record{Connected: at(6), Routes: []acknowledged.Route{{Name: "a", Has: version(7), Former: at(5)}}},
		},
		"what it reports then": {
			func(x *acknowledged.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Closed(web, at(5))
				x.Opened(web, at(6))
				x.Happened(web, acked(routeOf("a", 7)))
			},
			acknowledged.Record{Connected: at(6), Routes: []acknowledged.Route{{Name: "a", Has: version(7)}}},
		},
		"that a second stream is open, on which it has not reported": {
			func(x *acknowledged.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Opened(web, at(6))
			},
			acknowledged.Record{Connected: at(6), Routes: []acknowledged.Route{{Name: "a", Has: version(7), Former: at(6)}}},
		},
		"that the former of two streams ends": {
			func(x *acknowledged.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Opened(web, at(6))
				x.Happened(web, acked(routeOf("a", 8)))
				x.Closed(web, at(7))
			},
			acknowledged.Record{Connected: at(6), Routes: []acknowledged.Route{{Name: "a", Has: version(8)}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x := acknowledged.NewIndex()
			x.Opened(web, now)
			tc.happens(x)
			tc.want.Proxy = web
			want := map[string]acknowledged.Record{web.UID: tc.want}
			if diff := cmp.Diff(want, x.Records(nil, []string{"b", "a"})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhoIsBehind(t *testing.T) {
	x := acknowledged.NewIndex()
	for i := range 5 {
		p := acknowledged.Proxy{UID: fmt.Sprint(i)}
		x.Opened(p, now)
		x.Happened(p, acked(routeOf("a", uint64(5+i%2))))
	}
	x.Closed(acknowledged.Proxy{UID: "2"}, now)
	newest := map[string]ads.Version{"a": version(6)}
	if diff := cmp.Diff(map[string][]string{"0": {"a"}, "4": {"a"}}, x.Behind(newest, 10)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]string{"0": {"a"}}, x.Behind(newest, 1)); diff != "" {
		t.Error(diff)
	}
}

func TestWhoLeftLongAgoIsForgotten(t *testing.T) {
	x := acknowledged.NewIndex()
	for i := range 3 {
		p := acknowledged.Proxy{UID: fmt.Sprint(i)}
		x.Opened(p, now)
		x.Happened(p, acked(routeOf("a", 5)))
		x.Closed(p, now.Add(time.Duration(i)*40*time.Minute))
	}
	if proxies, routes := x.Size(); proxies != 2 || routes != 2 {
		t.Errorf("%d proxies and %d routes are known", proxies, routes)
	}
}

func TestNotEverybodyWhoLeftIsRemembered(t *testing.T) {
	x := acknowledged.NewIndex()
	for i := range 20_000 {
		p := acknowledged.Proxy{UID: fmt.Sprint(i)}
		x.Opened(p, now)
		x.Closed(p, now)
	}
	if proxies, _ := x.Size(); proxies != 10_000 {
		t.Errorf("%d proxies are known", proxies)
	}
}

// M5 of the review of the mesh: the lock was held for all proxies, and no answer was noted meanwhile.
// Records that are read in pieces are complete, and no others.
func TestRecordsOfMoreProxiesThanAreReadAtOnce(t *testing.T) {
	const all = 1000
	x := acknowledged.NewIndex()
	var asked []string
	for i := range all {
		p := acknowledged.Proxy{UID: fmt.Sprint(i)}
		x.Opened(p, now)
		x.Happened(p, acked(routeOf("a", 7)))
		if i%2 == 0 {
			asked = append(asked, p.UID)
		}
	}
	records := x.Records(append(asked, "none"), []string{"a"})
	if len(records) != len(asked) || len(x.Records(nil, nil)) != all || len(x.Records([]string{}, nil)) != 0 {
		t.Errorf("of %d proxies there are %d records", len(asked), len(records))
	}
	for _, uid := range asked {
		if r := records[uid]; r.UID != uid || len(r.Routes) != 1 || r.Routes[0].Has != version(7) {
			t.Errorf("the record of %s is %+v", uid, r)
		}
	}
	newest := map[string]ads.Version{"a": version(8)}
	if n := len(x.Behind(newest, all+1)); n != all {
		t.Errorf("%d proxies are behind, want %d", n, all)
	}
	behind := x.Behind(newest, 300)
	for i := range 300 {
		if behind[fmt.Sprint(i)] == nil {
			t.Fatalf("of the %d that are behind and have not changed for the longest time, %d is missing", len(behind), i)
		}
	}
}
