// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// wishes of arms "weight" or "weight of reserved", the stable one's weight left out.
func wishes(arms ...[2]traffic.Weight) []traffic.Wish {
	out := []traffic.Wish{{Variation: "v0", Weight: traffic.Total}}
	for i, arm := range arms {
		w := traffic.Wish{Variation: fmt.Sprint("v", i+1), Weight: arm[0], Reserved: arm[1], Reserves: arm[1] > 0}
		out[0].Weight -= arm[0]
		out = append(out, w)
	}
	return out
}

func ranges(s traffic.Shares) string {
	var parts []string
	for _, share := range s[1:] {
		parts = append(parts, fmt.Sprint(share.Weight, " of ", share.Reserved))
	}
	return strings.Join(parts, ", ")
}

func TestReserve(t *testing.T) {
	type arms = [][2]traffic.Weight
	tests := map[string]struct {
		steps arms // the last one of several is looked at
		then  []arms
		want  string
		moved bool
	}{
		"of two the second has all of it":                      {steps: arms{{100, 0}}, want: "100 of 10000"},
		"unless less is asked for":                             {steps: arms{{100, 3_000}}, want: "100 of 3000"},
		"of three each other has a half":                       {steps: arms{{100, 0}, {200, 0}}, want: "100 of 5000, 200 of 5000"},
		"what is asked for is given":                           {steps: arms{{100, 2_000}, {200, 7_000}}, want: "100 of 2000, 200 of 7000"},
		"ranges stay while weights fit":                        {steps: arms{{100, 0}, {200, 0}}, then: []arms{{{5_000, 0}, {0, 0}}}, want: "5000 of 5000, 0 of 5000"},
		"one that does not fit takes of its neighbor":          {steps: arms{{100, 0}, {200, 0}}, then: []arms{{{6_000, 0}, {200, 0}}}, want: "6000 of 6000, 200 of 4000", moved: true},
		"where nobody is behind it nobody is moved":            {steps: arms{{100, 0}, {0, 0}}, then: []arms{{{6_000, 0}, {0, 0}}}, want: "6000 of 6000, 0 of 4000"},
		"the last one takes of the one before":                 {steps: arms{{100, 0}, {200, 0}}, then: []arms{{{100, 0}, {6_000, 0}}}, want: "100 of 4000, 6000 of 6000", moved: true},
		"what no range has is taken by the one beside it":      {steps: arms{{100, 0}, {100, 0}, {100, 0}}, then: []arms{{{100, 0}, {100, 0}, {3_334, 0}}}, want: "100 of 3333, 100 of 3333, 3334 of 3334"},
		"ranges that are asked for anew move who is behind":    {steps: arms{{100, 2_000}, {200, 7_000}}, then: []arms{{{100, 3_000}, {200, 7_000}}}, want: "100 of 3000, 200 of 7000", moved: true},
		"a larger range behind all others moves nobody":        {steps: arms{{100, 2_000}, {200, 3_000}}, then: []arms{{{100, 2_000}, {200, 8_000}}}, want: "100 of 2000, 200 of 8000"},
		"a range that is too small by mistake has room enough": {steps: arms{{3_000, 2_000}}, want: "3000 of 3000"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			split, moved := traffic.Reserve(wishes(tc.steps...), nil)
			for _, step := range tc.then {
				split, moved = traffic.Reserve(wishes(step...), split)
			}
			if err := split.Validate(); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(tc.want, ranges(split)); d != "" {
				t.Errorf("the ranges (-want +got):\n%s", d)
			}
			if moved != tc.moved {
				t.Errorf("moved is %v, want %v", moved, tc.moved)
			}
		})
	}
}

// A step that is not said to move anybody takes nobody out of a variation but those
// whose variation shrinks.
func TestWhoIsNotSaidToBeMovedStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "others")
		draw := func(label string) []traffic.Wish {
			arms := make([][2]traffic.Weight, n)
			left := traffic.Total
			for i := range arms {
				arms[i][0] = traffic.Weight(rapid.IntRange(0, int(left)).Draw(t, label))
				left -= arms[i][0]
			}
			return wishes(arms...)
		}
		before, _ := traffic.Reserve(draw("before"), nil)
		after, moved := traffic.Reserve(draw("after"), before)
		if err := after.Validate(); err != nil {
			t.Fatal(err)
		}
		if moved {
			return
		}
		weights := map[string]traffic.Weight{}
		for _, share := range before {
			weights[share.Variation] -= share.Weight
		}
		for _, share := range after {
			weights[share.Variation] += share.Weight
		}
		was, is := before.Layout(), after.Layout()
		for key := range traffic.Total {
			a, b := at(was, key), at(is, key)
			if a != b && a != "v0" && (b != "v0" && weights[a] >= 0) {
				t.Fatalf("key %d goes from %s, which has %d more, to %s, and nobody said so", key, a, weights[a], b)
			}
		}
	})
}

// A ramp of two variations never moves anybody back.
func TestARampOfTwoOnlyAddsVisitors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var split traffic.Shares
		weight := 0
		for range rapid.IntRange(2, 6).Draw(t, "steps") {
			weight = rapid.IntRange(weight, 100).Draw(t, "percent")
			next, moved := traffic.Reserve(wishes([2]traffic.Weight{traffic.Weight(weight) * 100, 0}), split)
			if moved {
				t.Fatalf("somebody is moved at %d %%", weight)
			}
			if split != nil {
				was, is := split.Layout(), next.Layout()
				for key := range traffic.Total {
					if at(was, key) == "v1" && at(is, key) != "v1" {
						t.Fatalf("key %d is moved back at %d %%", key, weight)
					}
				}
			}
			split = next
		}
	})
}
