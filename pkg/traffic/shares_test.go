// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

func two(canary traffic.Weight) traffic.Shares {
	return traffic.Shares{{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}}
}

func TestASplitIsRefusedWhen(t *testing.T) {
	tests := map[string]struct {
		split traffic.Shares
		want  string
	}{
		"it has one variation":           {split: traffic.Shares{{Variation: "a", Weight: 10_000}}, want: "2 to 8 variations, not 1"},
		"it has nine":                    {split: make(traffic.Shares, 9), want: "2 to 8 variations, not 9"},
		"one has no name":                {split: traffic.Shares{{Variation: "a", Weight: 10_000}, {}}, want: "variation 1 has no name"},
		"one is there twice":             {split: traffic.Shares{{Variation: "a", Weight: 10_000}, {Variation: "a"}}, want: "a is there twice"},
		"a weight is negative":           {split: two(-1), want: "the weight of canary is -1"},
		"the weights are not the whole":  {split: traffic.Shares{{Variation: "a", Weight: 9_000}, {Variation: "b"}}, want: "add up to 9000"},
		"one has more than its range":    {split: traffic.Shares{{Variation: "a", Weight: 5_000}, {Variation: "b", Weight: 5_000, Reserved: 4_000}}, want: "4000 is reserved for b, which has 5000"},
		"more is reserved than there is": {split: traffic.Shares{{Variation: "a", Weight: 10_000}, {Variation: "b", Reserved: 6_000}, {Variation: "c", Reserved: 6_000}}, want: "12000 is reserved"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tc.split.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want something with %q", err, tc.want)
			}
		})
	}
}

func TestLayout(t *testing.T) {
	three := func(b, c traffic.Weight) traffic.Shares {
		return traffic.Shares{{Variation: "a", Weight: 10_000 - b - c}, {Variation: "b", Weight: b, Reserved: 3_000}, {Variation: "c", Weight: c, Reserved: 5_000}}
	}
	tests := map[string]struct {
		split traffic.Shares
		want  string
	}{
		"of two the canary comes first":            {split: two(100), want: "canary 100, stable 9900"},
		"one without a share is not there":         {split: two(0), want: "stable 10000"},
		"nor is the stable one without":            {split: two(10_000), want: "canary 10000"},
		"each has its own range":                   {split: three(1_000, 500), want: "b 1000, a 2000, c 500, a 6500"},
		"a range that is full touches the next":    {split: three(3_000, 5_000), want: "b 3000, c 5000, a 2000"},
		"one that has nothing leaves its range":    {split: three(0, 500), want: "a 3000, c 500, a 6500"},
		"ranges that nobody fills are one segment": {split: three(0, 0), want: "a 10000"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tc.split.Validate(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range tc.split.Layout() {
				got = append(got, fmt.Sprint(s.Variation, " ", s.Weight))
			}
			if d := cmp.Diff(tc.want, strings.Join(got, ", ")); d != "" {
				t.Errorf("the layout (-want +got):\n%s", d)
			}
		})
	}
}

// at is the variation of a key, found as Envoy finds it.
func at(segments []traffic.Segment, key traffic.Weight) string {
	for _, s := range segments {
		if key < s.Weight {
			return s.Variation
		}
		key -= s.Weight
	}
	return ""
}

func TestAShareThatGrowsOnlyAddsVisitors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(t, "variations")
		before := traffic.Shares{{Variation: "v0"}}
		left := traffic.Total
		for i := 1; i < n; i++ {
			reserved := traffic.Weight(rapid.IntRange(0, int(left)).Draw(t, "reserved"))
			left -= reserved
			before = append(before, traffic.Share{Variation: fmt.Sprint("v", i), Reserved: reserved, Weight: traffic.Weight(rapid.IntRange(0, int(reserved)).Draw(t, "weight"))})
		}
		fill := func(s traffic.Shares) {
			s[0].Weight = traffic.Total
			for _, share := range s[1:] {
				s[0].Weight -= share.Weight
			}
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		fill(before)
		after := append(traffic.Shares{}, before...)
		grows := rapid.IntRange(1, n-1).Draw(t, "grows")
		after[grows].Weight = traffic.Weight(rapid.IntRange(int(before[grows].Weight), int(before[grows].Reserved)).Draw(t, "to"))
		fill(after)
		was, is := before.Layout(), after.Layout()
		counts := map[string]traffic.Weight{}
		for key := range traffic.Total {
			a, b := at(was, key), at(is, key)
			counts[b]++
			if a != b && (a != "v0" || b != after[grows].Variation) {
				t.Fatalf("key %d goes from %s to %s while %s grows", key, a, b, after[grows].Variation)
			}
		}
		for _, share := range after {
			if counts[share.Variation] != share.Weight {
				t.Fatalf("%s has %d keys, want %d", share.Variation, counts[share.Variation], share.Weight)
			}
		}
	})
}

func TestClamp(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	later := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	tests := map[string]struct {
		ready  map[string]int
		before []traffic.Clamped
		now    int
		want   traffic.Weight // of the canary, which is to have 1,000
		after  []traffic.Clamped
		next   time.Time
	}{
		"with endpoints everywhere nothing moves":                                           {ready: map[string]int{"stable": 3, "canary": 1}, want: 1_000},
		"without endpoints the stable one gets the share":                                   {ready: map[string]int{"stable": 3}, after: []traffic.Clamped{{Variation: "canary", Since: noon}}},
		"that it had none before is remembered":                                             {ready: map[string]int{"stable": 3}, now: 5, before: []traffic.Clamped{{Variation: "canary", Since: noon}}, after: []traffic.Clamped{{Variation: "canary", Since: noon}}},
		"with endpoints again it waits":                                                     {ready: map[string]int{"stable": 3, "canary": 1}, now: 5, before: []traffic.Clamped{{Variation: "canary", Since: noon}}, after: []traffic.Clamped{{Variation: "canary", Since: noon, ReadySince: later(5)}}, next: later(15)},
		"and gets its share back":                                                           {ready: map[string]int{"stable": 3, "canary": 1}, now: 15, before: []traffic.Clamped{{Variation: "canary", Since: noon, ReadySince: later(5)}}, want: 1_000},
		"one that loses them meanwhile waits anew":                                          {ready: map[string]int{"stable": 3}, now: 14, before: []traffic.Clamped{{Variation: "canary", Since: noon, ReadySince: later(5)}}, after: []traffic.Clamped{{Variation: "canary", Since: noon}}},
		"without endpoints anywhere the last weights stay":                                  {want: 1_000},
		"also those that were clamped":                                                      {before: []traffic.Clamped{{Variation: "canary", Since: noon}}, after: []traffic.Clamped{{Variation: "canary", Since: noon}}},
		"a clamped one that is ready gets its share back when the stable one cannot answer": {ready: map[string]int{"canary": 1}, now: 5, before: []traffic.Clamped{{Variation: "canary", Since: noon}}, want: 1_000},
		"nobody is moved to the canary when the stable fails":                               {ready: map[string]int{"canary": 3}, want: 1_000},
		"one that dies while it waits and the stable one fails does not wait any more":      {now: 9, before: []traffic.Clamped{{Variation: "canary", Since: noon, ReadySince: later(5)}}, after: []traffic.Clamped{{Variation: "canary", Since: noon}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			wanted := two(1_000)
			got, after := traffic.Clamp(wanted, tc.ready, tc.before, later(tc.now))
			if d := cmp.Diff(tc.after, after); d != "" {
				t.Errorf("what is clamped (-want +got):\n%s", d)
			}
			if got[1].Weight != tc.want || got.Validate() != nil {
				t.Errorf("the split is %v, want %d for the canary", got, tc.want)
			}
			if next := traffic.NextReturn(after); !next.Equal(tc.next) {
				t.Errorf("it is looked at again at %v, want %v", next, tc.next)
			}
			if d := cmp.Diff(two(1_000), wanted); d != "" {
				t.Errorf("what was wanted is changed:\n%s", d)
			}
		})
	}
}

// A release that is over may make the variation stable that was on trial.
func TestAVariationThatBecameTheStableOneIsNotClamped(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for name, ready := range map[string]map[string]int{
		"while it is ready": {"canary": 1, "stable": 1}, "while none is": {}, "while the other one is": {"stable": 1},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := traffic.Shares{{Variation: "canary", Weight: 9_000}, {Variation: "stable", Weight: 1_000, Reserved: 10_000}}
			got, _ := traffic.Clamp(wanted, ready, []traffic.Clamped{{Variation: "canary", Since: noon}}, noon)
			if d := cmp.Diff(wanted, got); d != "" {
				t.Errorf("the split (-want +got):\n%s", d)
			}
		})
	}
}

func TestTheFirstReturnIsNextInWhateverOrder(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	none, early, late := traffic.Clamped{Variation: "a"}, traffic.Clamped{Variation: "b", ReadySince: at(1)}, traffic.Clamped{Variation: "c", ReadySince: at(2)}
	for name, tc := range map[string]struct {
		clamped []traffic.Clamped
		want    time.Time
	}{
		"of none":                                {nil, time.Time{}},
		"of one that is not ready":               {[]traffic.Clamped{none}, time.Time{}},
		"of one that is, after one that is not":  {[]traffic.Clamped{none, early}, at(11)},
		"of one that is, before one that is not": {[]traffic.Clamped{early, none}, at(11)},
		"of two, the earlier first":              {[]traffic.Clamped{early, late}, at(11)},
		"of two, the later first":                {[]traffic.Clamped{late, early}, at(11)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := traffic.NextReturn(tc.clamped); !got.Equal(tc.want) {
				t.Errorf("it is %v, want %v", got, tc.want)
			}
		})
	}
}
