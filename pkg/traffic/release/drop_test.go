// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// look at a cluster with these Services.
func look(at time.Time, services ...string) release.Look {
	there := map[types.NamespacedName]bool{}
	for _, s := range services {
		there[nameOf("shop", s)] = true
	}
	return release.Look{Now: at, KeptFor: 45 * time.Minute, Present: func(s types.NamespacedName) bool { return there[s] }}
}

func TestAnEntryIsDueSomeTimeAfterItsServiceIsGone(t *testing.T) {
	gone := noon.Unix()
	for name, tc := range map[string]struct {
		entry release.Entry
		after time.Duration
		there bool
		mark  int64
		due   bool
	}{
		"the Service is there":              {release.Entry{Plain: 5}, time.Hour, true, 0, false},
		"it is gone":                        {release.Entry{Plain: 5}, 0, false, gone, false},
		"it has been gone for long":         {release.Entry{Plain: 5, Gone: gone}, 45 * time.Minute, false, gone, true},
		"it has not":                        {release.Entry{Plain: 5, Gone: gone}, 45*time.Minute - time.Second, false, gone, false},
		"it is back":                        {release.Entry{Plain: 5, Gone: gone}, time.Hour, true, 0, false},
		"it was gone at a time to come":     {release.Entry{Plain: 5, Gone: gone + 7200}, 0, false, gone, false},
		"a release still holds it":          {release.Entry{Ceiling: 9, Release: "web", Holder: "u"}, time.Hour, false, 0, false},
		"a release holds it that came back": {release.Entry{Ceiling: 9, Release: "web", Holder: "u", Gone: gone}, time.Hour, false, gone, false},
	} {
		t.Run(name, func(t *testing.T) {
			entries := map[string]release.Entry{"shop.web": tc.entry}
			l := look(noon.Add(tc.after))
			if tc.there {
				l = look(noon.Add(tc.after), "web")
			}
			if due := l.Due(entries); (len(due) == 1) != tc.due {
				t.Errorf("due are %v", due)
			}
			l.Mark(entries)
			if got := entries["shop.web"].Gone; got != tc.mark {
				t.Errorf("gone since %d, want %d", got, tc.mark)
			}
		})
	}
}

// A ledger of before there were marks may be as full as it was allowed to be then.
func TestMarksFitIntoALedgerThatIsFull(t *testing.T) {
	entries := map[string]release.Entry{}
	for i := range 36_000 {
		entries[fmt.Sprint("a.", i)] = release.Entry{Plain: 10_000_000}
	}
	stored := func() (bytes, marked int) {
		for key, e := range entries {
			bytes += len(key) + len(e.String())
			if e.Gone > 0 {
				marked++
			}
		}
		return bytes, marked
	}
	if bytes, _ := stored(); bytes < 850<<10 || bytes > 1000<<10 {
		t.Fatalf("it has %d bytes before", bytes)
	}
	look(noon).Mark(entries)
	bytes, marked := stored()
	if bytes > 1000<<10 {
		t.Errorf("%d marks make it %d bytes", marked, bytes)
	}
	if marked < 100 {
		t.Errorf("%d entries are marked", marked)
	}
}

func TestAServiceThatComesBackGoesOnAboveWhatWasDropped(t *testing.T) {
	entries := map[string]release.Entry{"shop.web": {Plain: 3000}, "shop.pay": {Plain: 1000}, "shop.cart": {Ceiling: 7, Release: "r", Holder: "u"}}
	release.Drop(entries, []types.NamespacedName{nameOf("shop", "cart"), nameOf("shop", "none"), nameOf("shop", "web"), nameOf("shop", "pay")})
	want := map[string]release.Entry{"_.dropped": {Plain: 4000, Floor: 3000}, "shop.cart": {Ceiling: 7, Release: "r", Holder: "u"}}
	if diff := cmp.Diff(want, entries); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if e, floor := release.EntryOf(entries, nameOf("shop", "web")).Hold("again", "u2", 0); floor != 3000 || e.Plain != 3000 || e.Ceiling != 4000 {
		t.Errorf("a release of it is above %d: %s", floor, e)
	}
	if all := entries["_.dropped"]; (release.Entry{Plain: 10}).Restore(all) != all {
		t.Error("what was dropped is forgotten with a ledger that is put back")
	}
	for _, l := range []release.Look{look(noon), look(noon.Add(time.Hour))} {
		l.Mark(entries)
		if due := l.Due(entries); len(due) != 0 || entries["_.dropped"].Gone != 0 {
			t.Errorf("the sum of what was dropped is due: %v", due)
		}
	}
}

func sumOf(entries map[string]release.Entry) (sum uint64) {
	for _, e := range entries {
		sum += e.Plain
	}
	return sum
}

// Each replica reads the ledger when it likes, and misses what happens between. The sum of all
// sequences is that of the ledger all the same, and never falls.
func TestWhoFollowsTheLedgerHasItsSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ledger, highest := map[string]release.Entry{}, map[string]uint64{}
		var known map[string]release.Entry
		var last uint64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			service := nameOf("shop", fmt.Sprint("s", rapid.IntRange(0, 4).Draw(t, "service")))
			key := release.EntryKey(service)
			switch rapid.SampledFrom([]string{"decide", "decide", "drop", "read", "read"}).Draw(t, "what") {
			case "decide":
				e, _ := release.EntryOf(ledger, service).Hold("web", "u", 0)
				ledger[key] = e.Settle()
			case "drop":
				release.Drop(ledger, []types.NamespacedName{service})
			case "read":
				var dropped []types.NamespacedName
				known, dropped = release.Follow(known, maps.Clone(ledger))
				for _, d := range dropped {
					delete(highest, release.EntryKey(d))
				}
				for k, e := range known {
					highest[k] = max(highest[k], e.Plain)
				}
				var sum uint64
				for _, n := range highest {
					sum += n
				}
				if sum != sumOf(ledger) || sum < last {
					t.Fatalf("the sum is %d after %d, and %d in the ledger %v", sum, last, sumOf(ledger), ledger)
				}
				last = sum
			}
		}
	})
}

func TestAnEntryThatSomeoneTookOutIsKept(t *testing.T) {
	known := map[string]release.Entry{"shop.web": {Plain: 3000}, "shop.pay": {Plain: 1000}, "_.dropped": {Plain: 500, Floor: 500}}
	for name, tc := range map[string]struct {
		stored, want map[string]release.Entry
		dropped      int
	}{
		"all of them":           {map[string]release.Entry{}, known, 0},
		"one of them":           {map[string]release.Entry{"shop.web": {Plain: 3000}, "_.dropped": {Plain: 500, Floor: 500}}, known, 0},
		"one, another dropped":  {map[string]release.Entry{"_.dropped": {Plain: 1500, Floor: 1000}}, known, 0},
		"what was dropped":      {map[string]release.Entry{"shop.web": {Plain: 3000}, "shop.pay": {Plain: 1000}}, known, 0},
		"none: one was dropped": {map[string]release.Entry{"shop.web": {Plain: 3000}, "_.dropped": {Plain: 1500, Floor: 1000}}, map[string]release.Entry{"shop.web": {Plain: 3000}, "_.dropped": {Plain: 1500, Floor: 1000}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, dropped := release.Follow(known, tc.stored)
			if diff := cmp.Diff(tc.want, got); diff != "" || len(dropped) != tc.dropped {
				t.Errorf("dropped %v (-want +got):\n%s", dropped, diff)
			}
		})
	}
}
