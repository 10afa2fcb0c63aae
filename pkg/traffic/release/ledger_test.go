// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

func TestHold(t *testing.T) {
	held := release.Entry{Plain: 5, Ceiling: 1005, Release: "a", Holder: "u1"}
	tests := map[string]struct {
		entry  release.Entry
		uid    string
		before uint64
		want   release.Entry
	}{
		"a Service that was never divided":            {release.Entry{}, "u1", 0, release.Entry{Plain: 0, Ceiling: 1000, Release: "a", Holder: "u1"}},
		"one that was":                                {release.Entry{Plain: 5}, "u1", 0, held},
		"what is reserved is enough":                  {held, "u1", 1003, held},
		"what is reserved is enough for one of two":   {held, "u1", 1004, release.Entry{Plain: 5, Ceiling: 2004, Release: "a", Holder: "u1"}},
		"what is reserved is used up":                 {held, "u1", 1005, release.Entry{Plain: 5, Ceiling: 2005, Release: "a", Holder: "u1"}},
		"another release takes it over":               {held, "u2", 0, release.Entry{Plain: 1005, Ceiling: 2005, Release: "a", Holder: "u2"}},
		"the holder has lost what it decided":         {held, "u1", 0, release.Entry{Plain: 1005, Ceiling: 2005, Release: "a", Holder: "u1"}},
		"the ledger was lost, and the release is not": {release.Entry{}, "u1", 77, release.Entry{Plain: 0, Ceiling: 1077, Release: "a", Holder: "u1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, floor := tc.entry.Hold("a", tc.uid, tc.before)
			if diff := cmp.Diff(tc.want, got); diff != "" || floor != got.Plain {
				t.Errorf("the entry, floor %d (-want +got):\n%s", floor, diff)
			}
			if back, err := release.ParseEntry(got.String()); err != nil || back != got {
				t.Errorf("it comes back as %+v: %v", back, err)
			}
		})
	}
}

// Releases come, decide and go; what a Service has never shrinks, whoever sees the
// ledger and the releases when.
func TestNothingThatAServiceHasEverShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e release.Entry
		var last, own uint64 // the highest that a proxy may have, and the release's
		holder := ""
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"decide", "decide", "decide", "another", "go", "forget"}).Draw(t, "what") {
			case "another":
				holder, own = "u"+string(rune('a'+step)), 0
			case "forget":
				own = 0
			case "go":
				if holder == "" {
					continue
				}
				if e.Holder == holder && e.Ceiling < last {
					t.Fatalf("without the release it is %d after %d", e.Ceiling, last)
				}
				holder, own = "", 0
				e = e.Settle()
				last = max(last, e.Plain)
			case "decide":
				if holder == "" {
					continue
				}
				var floor uint64
				e, floor = e.Hold("web", holder, own)
				next := max(floor, own) + 1
				if next <= last && own == 0 || next > e.Ceiling {
					t.Fatalf("%d follows %d, up to %d", next, last, e.Ceiling)
				}
				own = next
				last = max(last, next)
			}
		}
	})
}

// Whatever is put back, what comes of it is not below what was known; and what came
// after that is taken as it is.
func TestRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := []release.Entry{{}}
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			e := entries[len(entries)-1]
			what := rapid.SampledFrom([]string{"same", "another", "lost", "go"}).Draw(t, "what")
			if e.Holder == "" {
				what = "another"
			}
			switch what {
			case "same":
				e, _ = e.Hold("web", e.Holder, e.Ceiling)
			case "another":
				e, _ = e.Hold("web", "u"+string(rune('a'+step)), 0)
			case "lost":
				e, _ = e.Hold("web", e.Holder, 0)
			case "go":
				e = e.Settle()
			}
			entries = append(entries, e)
		}
		older := rapid.IntRange(0, len(entries)-1).Draw(t, "older")
		newer := rapid.IntRange(older, len(entries)-1).Draw(t, "newer")
		if got := entries[older].Restore(entries[newer]); got != entries[newer] {
			t.Fatalf("put back to %s it is %s, not %s", entries[older], got, entries[newer])
		}
		if got := entries[newer].Restore(entries[older]); got != entries[newer] {
			t.Fatalf("%s, of which %s is known, is %s", entries[newer], entries[older], got)
		}
	})
}

func TestEntriesThatCannotBe(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":                   "12",
		"a ceiling below":           `{"plain":5,"ceiling":4,"holder":"u"}`,
		"a ceiling without holder":  `{"plain":5,"ceiling":9}`,
		"a number that is negative": `{"plain":-5}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := release.ParseEntries(map[string]string{"shop.web": text}); err == nil || !strings.Contains(err.Error(), "shop.web") {
				t.Errorf("it is read: %v", err)
			}
		})
	}
}
