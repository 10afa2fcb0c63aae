// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheRotationIsReadFromTheEnvironment(t *testing.T) {
	tests := map[string]struct {
		text  string
		want  int
		fails bool
	}{
		"by default it is zero":       {"", 0, false},
		"a decimal number":            {"7", 7, false},
		"one of a commit":             {"16777215", 16777215, false},
		"no negative number":          {"-1", 0, true},
		"no number in another base":   {"0x7", 0, true},
		"no number that is too large": {"4294967296", 0, true},
		"no words":                    {"first", 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(Variable, tc.text)
			if got, err := FromEnvironment(); got != tc.want || (err != nil) != tc.fails {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

func TestSuccessiveSlicesAreTheWholeOnce(t *testing.T) {
	tests := map[string]struct{ n, of int }{
		"several in each":             {33, 11},
		"not the same number in each": {10, 4},
		"fewer than rotations":        {3, 5},
		"all at once":                 {4, 1},
		"nothing":                     {0, 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var all, want []int
			for r := range tc.of {
				all = append(all, Slice(tc.n, tc.of, 5*tc.of+2+r)...)
			}
			for i := range tc.n {
				want = append(want, i)
			}
			slices.Sort(all)
			if diff := cmp.Diff(want, all); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// pairs of values that occur together in a case.
func pairs(c Case) []string {
	values := []string{fmt.Sprint("thing ", c.Thing), fmt.Sprint("second side ", c.Second), fmt.Sprint("first option ", c.FirstOn), fmt.Sprint("second option ", c.SecondOn)}
	var all []string
	for i, a := range values {
		for _, b := range values[i+1:] {
			all = append(all, a+", "+b)
		}
	}
	return all
}

// table has all cases of n things.
func table(n int) []Case {
	var all []Case
	for thing := range n {
		for bits := range 8 {
			all = append(all, Case{thing, bits&1 != 0, bits&2 != 0, bits&4 != 0})
		}
	}
	return all
}

func TestEachRotationHasAllPairsAndFourHaveAllCases(t *testing.T) {
	for n := 4; n <= 12; n++ {
		want := map[string]bool{}
		for _, c := range table(n) {
			for _, pair := range pairs(c) {
				want[pair] = true
			}
		}
		for first := range 4 {
			times := map[Case]int{}
			for r := first; r < first+4; r++ {
				chosen := Pairs(n, r)
				got := map[string]bool{}
				for _, c := range chosen {
					times[c]++
					for _, pair := range pairs(c) {
						got[pair] = true
					}
				}
				if diff := cmp.Diff(want, got); diff != "" || len(chosen) != 2*n {
					t.Errorf("%d things, rotation %d: %d cases; pairs (-want +got):\n%s", n, r, len(chosen), diff)
				}
			}
			for _, c := range table(n) {
				if times[c] != 1 {
					t.Errorf("%d things, rotations from %d: %+v is chosen %d times", n, first, c, times[c])
				}
			}
		}
	}
}
