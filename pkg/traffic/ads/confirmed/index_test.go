// SPDX-License-Identifier: Apache-2.0

package confirmed_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/confirmed"
)

var web = confirmed.Proxy{UID: "uid-0", Namespace: "shop", Pod: "web-0"}

func routeOf(name string, sequence uint64) *ads.Resource {
	return &ads.Resource{Type: ads.Route, Name: name, Version: version(sequence)}
}

func acked(resources ...*ads.Resource) ads.Acked { return ads.Acked{Resources: resources} }

func TestWhatAProxyHas(t *testing.T) {
	at := func(second int) time.Time { return now.Add(time.Duration(second) * time.Second) }
	tests := map[string]struct {
		happens func(x *confirmed.Index)
		want    confirmed.Record
	}{
		"what it confirms": {
			func(x *confirmed.Index) { x.Happened(web, acked(routeOf("a", 7), routeOf("b", 3))) },
			confirmed.Record{Connected: now, Routes: []confirmed.Route{{Name: "a", Has: version(7)}, {Name: "b", Has: version(3)}}},
		},
		"nothing of what nobody decides about": {
			func(x *confirmed.Index) {
				x.Happened(web, acked(routeOf("a", 0), &ads.Resource{Type: ads.Cluster, Name: "c", Version: version(7)}))
			},
			confirmed.Record{Connected: now},
		},
		"what it had before, and why it refuses what came then": {
			func(x *confirmed.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Happened(web, ads.Rejected{Resource: routeOf("a", 8), Message: "no"})
			},
			confirmed.Record{Connected: now, Routes: []confirmed.Route{{Name: "a", Has: version(7), About: version(8), Why: "refuses 8.h: no"}}},
		},
		"what is on the way, also of what it has never had": {
			func(x *confirmed.Index) { x.Happened(web, ads.Send{Resources: []*ads.Resource{routeOf("a", 1)}}) },
			confirmed.Record{Connected: now, Routes: []confirmed.Route{{Name: "a", About: version(1), Why: "was sent 1.h, and has not answered"}}},
		},
		"nothing against it once it is confirmed": {
			func(x *confirmed.Index) {
				x.Happened(web, ads.Late{Route: routeOf("a", 8)})
				x.Happened(web, acked(routeOf("a", 8)))
			},
			confirmed.Record{Connected: now, Routes: []confirmed.Route{{Name: "a", Has: version(8)}}},
		},
		"what is said about what it waits for": {
			func(x *confirmed.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Explain(web.UID, "a", version(8), "waits for endpoints")
			},
			confirmed.Record{Connected: now, Routes: []confirmed.Route{{Name: "a", Has: version(7), About: version(8), Why: "waits for endpoints"}}},
		},
		"a long text in short": {
			func(x *confirmed.Index) {
				x.Explain(web.UID, "a", version(8), strings.Repeat("é", 5000))
			},
			confirmed.Record{Connected: now, Routes: []confirmed.Route{{Name: "a", About: version(8), Why: strings.Repeat("é", 256) + "…"}}},
		},
		"that it has left, and what it had": {
			func(x *confirmed.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Closed(web, at(5))
			},
			confirmed.Record{Connected: now, Left: at(5), Routes: []confirmed.Route{{Name: "a", Has: version(7), Former: at(5)}}},
		},
		"that it is back, and has not reported": {
			func(x *confirmed.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Closed(web, at(5))
				x.Opened(web, at(6))
			},
			confirmed.Record{Connected: at(6), Routes: []confirmed.Route{{Name: "a", Has: version(7), Former: at(5)}}},
		},
		"what it reports then": {
			func(x *confirmed.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Closed(web, at(5))
				x.Opened(web, at(6))
				x.Happened(web, acked(routeOf("a", 7)))
			},
			confirmed.Record{Connected: at(6), Routes: []confirmed.Route{{Name: "a", Has: version(7)}}},
		},
		"that a second stream is open, on which it has not reported": {
			func(x *confirmed.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Opened(web, at(6))
			},
			confirmed.Record{Connected: at(6), Routes: []confirmed.Route{{Name: "a", Has: version(7), Former: at(6)}}},
		},
		"that the former of two streams ends": {
			func(x *confirmed.Index) {
				x.Happened(web, acked(routeOf("a", 7)))
				x.Opened(web, at(6))
				x.Happened(web, acked(routeOf("a", 8)))
				x.Closed(web, at(7))
			},
			confirmed.Record{Connected: at(6), Routes: []confirmed.Route{{Name: "a", Has: version(8)}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x := confirmed.NewIndex()
			x.Opened(web, now)
			tc.happens(x)
			tc.want.Proxy = web
			want := map[string]confirmed.Record{web.UID: tc.want}
			if diff := cmp.Diff(want, x.Records(nil, []string{"b", "a"})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhoIsBehind(t *testing.T) {
	x := confirmed.NewIndex()
	for i := range 5 {
		p := confirmed.Proxy{UID: fmt.Sprint(i)}
		x.Opened(p, now)
		x.Happened(p, acked(routeOf("a", uint64(5+i%2))))
	}
	x.Closed(confirmed.Proxy{UID: "2"}, now)
	newest := map[string]ads.Version{"a": version(6)}
	if diff := cmp.Diff(map[string][]string{"0": {"a"}, "4": {"a"}}, x.Behind(newest, 10)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]string{"0": {"a"}}, x.Behind(newest, 1)); diff != "" {
		t.Error(diff)
	}
}

func TestWhoLeftLongAgoIsForgotten(t *testing.T) {
	x := confirmed.NewIndex()
	for i := range 3 {
		p := confirmed.Proxy{UID: fmt.Sprint(i)}
		x.Opened(p, now)
		x.Happened(p, acked(routeOf("a", 5)))
		x.Closed(p, now.Add(time.Duration(i)*40*time.Minute))
	}
	if proxies, routes := x.Size(); proxies != 2 || routes != 2 {
		t.Errorf("%d proxies and %d routes are known", proxies, routes)
	}
}

func TestNotEverybodyWhoLeftIsRemembered(t *testing.T) {
	x := confirmed.NewIndex()
	for i := range 20_000 {
		p := confirmed.Proxy{UID: fmt.Sprint(i)}
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
	x := confirmed.NewIndex()
	var asked []string
	for i := range all {
		p := confirmed.Proxy{UID: fmt.Sprint(i)}
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
