// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
)

func count(variation string, completed, failed uint64) peers.Count {
	return peers.Count{Namespace: "shop", Service: "web", Variation: variation, Completed: completed, Failed: failed, InFlight: completed % 7}
}

func TestWhatWasCountedSince(t *testing.T) {
	// Every two seconds ten more requests of a, of which one fails.
	steady := func(tally *peers.Tally) {
		for i := range uint64(31) {
			if err := tally.Add(now, []peers.Count{count("a", 1000+10*i, i)}, now.Add(time.Duration(i)*2*time.Second)); err != nil {
				panic(err)
			}
		}
	}
	end := now.Add(time.Minute)
	tests := map[string]struct {
		happens func(*peers.Tally)
		since   time.Time
		want    map[string]peers.Count
		from    time.Time
	}{
		"nothing":        {func(*peers.Tally) {}, now, map[string]peers.Count{}, time.Time{}},
		"of a minute":    {steady, now, map[string]peers.Count{"a": {Completed: 300, Failed: 30}}, now},
		"of ten seconds": {steady, end.Add(-10 * time.Second), map[string]peers.Count{"a": {Completed: 50, Failed: 5}}, end.Add(-10 * time.Second)},
		"of more than is known: what was counted before it was told is not in it": {
			steady, now.Add(-time.Hour), map[string]peers.Count{"a": {Completed: 300, Failed: 30}}, now,
		},
		"of a variation that came later, from when all are known": {
			func(tally *peers.Tally) {
				steady(tally)
				_ = tally.Add(now, []peers.Count{count("b", 5, 0)}, end)
				_ = tally.Add(now, []peers.Count{count("b", 8, 1)}, end.Add(time.Second))
			},
			now, map[string]peers.Count{"a": {Completed: 300, Failed: 30}, "b": {Completed: 3, Failed: 1}}, end,
		},
		"nothing of the time before a replica was started again": {
			func(tally *peers.Tally) {
				steady(tally)
				_ = tally.Add(end, []peers.Count{count("a", 7, 0)}, end)
				_ = tally.Add(end, []peers.Count{count("a", 9, 0)}, end.Add(time.Second))
			},
			now, map[string]peers.Count{"a": {Completed: 2}}, end,
		},
		"nothing that a counter says which began anew and is past what it was": {
			func(tally *peers.Tally) {
				steady(tally)
				_ = tally.Add(now, []peers.Count{count("a", 5000, 40)}, end.Add(40*time.Minute))
				_ = tally.Add(now, []peers.Count{count("a", 5020, 41)}, end.Add(41*time.Minute))
			},
			end.Add(40 * time.Minute), map[string]peers.Count{"a": {Completed: 20, Failed: 1}}, end.Add(40 * time.Minute),
		},
		"nothing of the time before a counter went back": {
			func(tally *peers.Tally) {
				steady(tally)
				_ = tally.Add(now, []peers.Count{count("a", 7, 0)}, end)
			},
			now, map[string]peers.Count{"a": {}}, end,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var tally peers.Tally
			tc.happens(&tally)
			got, from := tally.Since("shop", "web", tc.since)
			for name, c := range got {
				got[name] = peers.Count{Completed: c.Completed, Failed: c.Failed}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || !from.Equal(tc.from) {
				t.Errorf("from %v, want %v; %s", from, tc.from, diff)
			}
		})
	}
}

func TestCountsThatCannotBe(t *testing.T) {
	var tally peers.Tally
	if err := tally.Add(now, []peers.Count{count("a", 1, 2)}, now); err == nil {
		t.Error("more failed than are over")
	}
	var many []peers.Count
	for i := range 2001 {
		many = append(many, count(fmt.Sprint(i), 1, 0))
	}
	if err := tally.Add(now, many, now); err == nil || !strings.Contains(err.Error(), "2000") {
		t.Errorf("there is no bound: %v", err)
	}
	if err := tally.Add(now, many[:1], now.Add(peers.Kept+time.Second)); err != nil {
		t.Errorf("what nobody tells of any more counts: %v", err)
	}
}
