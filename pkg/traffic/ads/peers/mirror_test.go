// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
)

var (
	now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	web = acknowledged.Proxy{UID: "uid-0", Namespace: "shop", Pod: "web-0"}
)

func version(sequence uint64) ads.Version { return ads.Version{Sequence: sequence, Hash: "h"} }

func routeOf(name string, sequence uint64) *ads.Resource {
	return &ads.Resource{Type: ads.Route, Name: name, Version: version(sequence)}
}

func acked(resources ...*ads.Resource) ads.Acked { return ads.Acked{Resources: resources} }

func change(uid string, routes int) acknowledged.Change {
	c := acknowledged.Change{Proxy: acknowledged.Proxy{UID: uid}, Connected: now}
	for i := range routes {
		c.Routes = append(c.Routes, acknowledged.Route{Name: fmt.Sprint("r", i), Has: version(7)})
	}
	return c
}

func TestWhatIsToldWronglyIsNotTaken(t *testing.T) {
	many := func(n, routes int) (all []acknowledged.Change) {
		for i := range n {
			all = append(all, change(fmt.Sprint(i), routes))
		}
		return all
	}
	tests := map[string]struct {
		updates []peers.Update
		want    string
	}{
		"one that is missing":      {[]peers.Update{{Number: 1, Complete: true}, {Number: 3}}, "update 3 follows 1"},
		"the same one twice":       {[]peers.Update{{Number: 1, Complete: true}, {Number: 1}}, "update 1 follows 1"},
		"a proxy without a uid":    {[]peers.Update{{Number: 1, Changes: many(1, 1)}, {Number: 2, Changes: []acknowledged.Change{{}}}}, "without a uid"},
		"more proxies than can be": {[]peers.Update{{Number: 1, Changes: many(50_001, 0)}}, "more than 50000 proxies"},
		"more routes than can be":  {[]peers.Update{{Number: 1, Changes: many(1001, 500)}}, "or 500000 routes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := peers.NewMirror()
			m.Begin()
			for i, u := range tc.updates {
				err := m.Take(&u, now)
				if last := i == len(tc.updates)-1; last != (err != nil) || last && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("update %d: %v", i, err)
				}
			}
		})
	}
}

func TestWhatWasKnownCountsUntilAllIsToldAnew(t *testing.T) {
	m := peers.NewMirror()
	known := func() string {
		var uids []string
		for uid := range m.Records(nil, nil) {
			uids = append(uids, uid)
		}
		return strings.Join(uids, " ")
	}
	take := func(number uint64, complete bool, uid string, at time.Time) {
		t.Helper()
		if err := m.Take(&peers.Update{Number: number, Now: at, Complete: complete, Changes: []acknowledged.Change{change(uid, 1)}}, at); err != nil {
			t.Fatal(err)
		}
	}
	m.Begin()
	take(1, false, "a", now)
	if m.Heard(now) || known() != "" {
		t.Error("half of it counts")
	}
	take(2, true, "a", now)
	if !m.Heard(now) || known() != "a" {
		t.Error("all of it does not count")
	}
	m.Begin()
	later := now.Add(5 * time.Second)
	take(1, false, "b", later)
	if !m.Heard(later) || known() != "a" {
		t.Error("what was known is forgotten")
	}
	if m.Heard(now.Add(peers.Silence)) {
		t.Error("half of it is heard")
	}
	take(2, true, "b", later)
	if !m.Heard(later) || known() != "b" {
		t.Error("what is new does not count")
	}
}

func TestUpdatesAreReadAsTheyWereWritten(t *testing.T) {
	u := peers.Update{Number: 3, Now: time.Unix(5, 7), Epoch: time.Unix(1, 0), Complete: true, Counts: []peers.Count{
		{Namespace: "shop", Service: "web", Variation: "a", Completed: 3, Failed: 2, InFlight: 1, Uncounted: 4}, {},
	}, Changes: []acknowledged.Change{
		{Proxy: web, Connected: time.Unix(1, 0), Left: time.Unix(2, 0), Routes: []acknowledged.Route{
			{Name: "a", Has: version(7), Former: time.Unix(1, 5), About: version(8), Why: "refuses"}, {Name: "b"},
		}},
		{Proxy: acknowledged.Proxy{UID: "x"}},
	}}
	var got peers.Update
	if err := got.Decode(u.Encode()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(u, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzUpdate(f *testing.F) {
	u := peers.Update{Number: 1, Now: now, Complete: true, Changes: []acknowledged.Change{change("a", 2)}}
	f.Add(u.Encode())
	f.Add([]byte{0x22, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{0x0b, 0x0c})
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second peers.Update
		if first.Decode(data) != nil {
			return
		}
		if err := second.Decode(first.Encode()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatal(diff)
		}
		m := peers.NewMirror()
		if m.Take(&first, now) == nil {
			m.Records(nil, []string{"r0"})
		}
	})
}
