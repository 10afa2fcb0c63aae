// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
)

// driven is an index to which anything happens, on several streams of each proxy.
type driven struct {
	x       *acknowledged.Index
	streams map[string]int
	at      time.Time
}

func (d *driven) step(t *rapid.T) {
	d.at = d.at.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "pass")) * time.Second)
	p := acknowledged.Proxy{UID: fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "proxy")), Namespace: "shop"}
	r := routeOf(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "route"), rapid.Uint64Range(0, 9).Draw(t, "sequence"))
	open := d.streams[p.UID] > 0
	switch rapid.IntRange(0, 5).Draw(t, "event") {
	case 0:
		d.streams[p.UID]++
		d.x.Opened(p, d.at)
	case 1:
		if open {
			d.streams[p.UID]--
			d.x.Closed(p, d.at)
		}
	case 2:
		if open {
			d.x.Happened(p, ads.Rejected{Resource: r, Message: "no"})
		}
	case 3:
		d.x.Explain(p.UID, r.Name, r.Version, "it waits")
	default:
		if open {
			d.x.Happened(p, acked(r))
		}
	}
}

// A replica that hears every update, or begins anew when it has missed one, knows what
// the other one does; whatever the limit of an update, and by its own clock.
func TestAMirrorFollowsItsIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &driven{acknowledged.NewIndex(), map[string]int{}, now}
		m := peers.NewMirror()
		offset := time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "offset"))
		var read acknowledged.Cursor
		var number uint64
		tell := func() (more bool) {
			var changes []acknowledged.Change
			changes, read, more = d.x.Since(read, rapid.IntRange(1, 20).Draw(t, "limit"))
			number++
			sent := peers.Update{Number: number, Now: d.at, Changes: changes, Complete: !more}
			var heard peers.Update
			if err := heard.Decode(sent.Encode()); err != nil {
				t.Fatal(err)
			}
			if err := m.Take(&heard, d.at.Add(offset)); err != nil {
				t.Fatal(err)
			}
			return more
		}
		m.Begin()
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			d.step(t)
			switch rapid.IntRange(0, 9).Draw(t, "then") {
			case 0:
				m.Begin()
				read, number = acknowledged.Cursor{}, 0
			case 1, 2:
				tell()
			}
		}
		for tell() {
		}
		routes := []string{"a", "b", "c"}
		want := d.x.Records(nil, routes)
		for uid, r := range want {
			for _, at := range []*time.Time{&r.Connected, &r.Left} {
				if !at.IsZero() {
					*at = at.Add(offset)
				}
			}
			for i := range r.Routes {
				if f := &r.Routes[i].Former; !f.IsZero() {
					*f = f.Add(offset)
				}
			}
			want[uid] = r
		}
		if diff := cmp.Diff(want, m.Records(nil, routes), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if !m.Heard(d.at.Add(offset)) || m.Heard(d.at.Add(offset+peers.Silence)) {
			t.Fatal("it is heard for six seconds after it has told something")
		}
	})
}

// A proxy that left and came back between two looks had said nothing on its new
// stream, and a mirror that had not seen it leave went on counting it as acknowledged.
func TestWhoComesBackBetweenTwoLooksHasAcknowledgedNothingYet(t *testing.T) {
	proxy := acknowledged.Proxy{UID: "0", Namespace: "shop"}
	x, m := acknowledged.NewIndex(), peers.NewMirror()
	var read acknowledged.Cursor
	var number uint64
	tell := func(at time.Time) {
		t.Helper()
		changes, next, more := x.Since(read, 100)
		read, number = next, number+1
		if err := m.Take(&peers.Update{Number: number, Now: at, Changes: changes, Complete: !more}, at); err != nil {
			t.Fatal(err)
		}
	}
	m.Begin()
	x.Opened(proxy, now)
	x.Happened(proxy, acked(routeOf("a", 3)))
	tell(now)
	left := now.Add(time.Second)
	x.Closed(proxy, left)
	x.Opened(proxy, left.Add(time.Second))
	tell(left.Add(2 * time.Second))
	routes := []string{"a"}
	if d := cmp.Diff(x.Records(nil, routes), m.Records(nil, routes)); d != "" {
		t.Errorf("what it knows (-index +mirror):\n%s", d)
	}
	if former := m.Records(nil, routes)["0"].Routes[0].Former; !former.Equal(left) {
		t.Errorf("it was acknowledged on a stream that ended at %v, want %v", former, left)
	}
}
