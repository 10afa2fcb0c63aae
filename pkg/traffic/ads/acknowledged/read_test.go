// SPDX-License-Identifier: Apache-2.0

package acknowledged_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
)

func TestChangesAreReadUpToALimit(t *testing.T) {
	x := acknowledged.NewIndex()
	for i := range 3 { // each is a proxy and a route
		p := acknowledged.Proxy{UID: fmt.Sprint(i)}
		x.Opened(p, now)
		x.Happened(p, acked(routeOf("a", 7)))
	}
	for limit, want := range map[int]int{0: 1, 3: 1, 4: 2, 5: 2, 6: 3} {
		changes, next, more := x.Since(acknowledged.Cursor{}, limit)
		if len(changes) != want || more != (want < 3) || len(changes[0].Routes) != 1 {
			t.Errorf("limit %d: %v, more %t; want %d changes", limit, changes, more, want)
		}
		if rest, _, _ := x.Since(next, 100); len(rest) != 3-want {
			t.Errorf("limit %d: then %v, want %d changes", limit, rest, 3-want)
		}
	}
}

func TestAChangeHasTheRoutesThatChanged(t *testing.T) {
	x := acknowledged.NewIndex()
	x.Opened(web, now)
	x.Happened(web, acked(routeOf("a", 7), routeOf("b", 7)))
	_, read, _ := x.Since(acknowledged.Cursor{}, 100)
	x.Happened(web, acked(routeOf("b", 8)))
	changes, read, _ := x.Since(read, 100)
	want := []acknowledged.Change{{Proxy: web, Connected: now, Routes: []acknowledged.Route{{Name: "b", Has: version(8)}}}}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	x.Happened(web, acked(routeOf("b", 8)))
	if changes, _, _ := x.Since(read, 100); len(changes) != 0 {
		t.Errorf("the same again is a change: %v", changes)
	}
}

// A replica that reads another one in pieces knows the same.
func TestAnIndexThatMergesAllChangesHasTheSameRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, twin := acknowledged.NewIndex(), acknowledged.NewIndex()
		var read acknowledged.Cursor
		at, streams := now, map[string]int{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			at = at.Add(time.Second)
			p := acknowledged.Proxy{UID: fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "proxy"))}
			what := rapid.SampledFrom([]string{"open", "close", "acknowledge", "acknowledge", "refuse", "read"}).Draw(t, "what")
			if what != "read" && streams[p.UID] == 0 {
				what = "open" // a proxy without a stream says nothing
			}
			switch what {
			case "open":
				streams[p.UID]++
				x.Opened(p, at)
			case "close":
				streams[p.UID]--
				x.Closed(p, at)
			case "acknowledge":
				x.Happened(p, acked(routeOf(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "route"), rapid.Uint64Range(1, 3).Draw(t, "sequence"))))
			case "refuse":
				x.Happened(p, ads.Rejected{Resource: routeOf("a", 4), Message: "no"})
			case "read":
				var changes []acknowledged.Change
				changes, read, _ = x.Since(read, rapid.IntRange(1, 4).Draw(t, "limit"))
				for _, c := range changes {
					twin.Merge(c, at)
				}
			}
		}
		for more := true; more; {
			var changes []acknowledged.Change
			changes, read, more = x.Since(read, 3)
			for _, c := range changes {
				twin.Merge(c, at)
			}
		}
		names := []string{"a", "b"}
		if diff := cmp.Diff(x.Records(nil, names), twin.Records(nil, names)); diff != "" {
			t.Fatalf("(-read +merged):\n%s", diff)
		}
	})
}

func TestWhatAProxyHasAcknowledgedOnItsStream(t *testing.T) {
	x := acknowledged.NewIndex()
	before := acknowledged.Proxy{UID: "before"}
	for _, p := range []acknowledged.Proxy{web, before} {
		x.Opened(p, now)
		x.Happened(p, acked(routeOf("a", 7)))
	}
	x.Happened(web, ads.Rejected{Resource: routeOf("b", 8), Message: "no"})
	x.Closed(before, now)
	for name, tc := range map[string]struct {
		uid, route string
		want       ads.Version
		is         bool
	}{
		"it has acknowledged a route":   {web.UID, "a", version(7), true},
		"it has refused a route":        {web.UID, "b", ads.Version{}, false},
		"it has heard of no such route": {web.UID, "c", ads.Version{}, false},
		"its stream has ended":          {before.UID, "a", ads.Version{}, false},
		"it is not known":               {"other", "a", ads.Version{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, is := x.Acknowledged(tc.uid, tc.route); got != tc.want || is != tc.is {
				t.Errorf("got %s, %t; want %s, %t", got, is, tc.want, tc.is)
			}
		})
	}
	if diff := cmp.Diff(map[string]bool{"a": true}, x.Held()); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
	x.Closed(web, now)
	if held := x.Held(); len(held) != 0 {
		t.Errorf("after all streams have ended %v are held", held)
	}
	for range 2 {
		if proxies, routes := x.Size(); proxies != 2 || routes != 3 {
			t.Errorf("%d proxies with %d routes are known", proxies, routes)
		}
	}
}

func TestAReaderIsWokenByTheNextChange(t *testing.T) {
	x := acknowledged.NewIndex()
	changed := x.Changed()
	select {
	case <-changed:
		t.Fatal("it is woken before there is a change")
	default:
	}
	x.Opened(web, now)
	select {
	case <-changed:
	default:
		t.Error("it is not woken by a stream")
	}
}

func TestAProxyThatLeftLongAgoElsewhereIsNotRemembered(t *testing.T) {
	x := acknowledged.NewIndex()
	x.Merge(acknowledged.Change{Proxy: web, Connected: ago(3 * time.Hour), Left: ago(time.Hour), Routes: []acknowledged.Route{has(7)}}, now)
	if proxies, routes := x.Size(); proxies != 0 || routes != 0 {
		t.Errorf("%d proxies with %d routes are known", proxies, routes)
	}
}
