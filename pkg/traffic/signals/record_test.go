// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawn counts, of which most are zero.
func drawn(t *rapid.T) (c Counts) {
	for range rapid.IntRange(1, 12).Draw(t, "how many") {
		c[rapid.IntRange(0, numbers-1).Draw(t, "which")] = rapid.OneOf(rapid.Uint64Range(1, 200), rapid.Uint64()).Draw(t, "number")
	}
	return c
}

// told is what back tells of, newest first.
type told struct {
	At     cell
	Counts Counts
}

func TestRecordsAreWhatWasAddedByCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r records
		var want []told // newest first
		at, oldest := cell(100), cell(0)
		for range rapid.IntRange(0, 60).Draw(t, "records") {
			at += cell(rapid.IntRange(0, 3).Draw(t, "later"))
			oldest = max(oldest, at-min(at, cell(rapid.IntRange(5, 30).Draw(t, "kept"))))
			c := drawn(t)
			r.add(at, &c, oldest, 1<<20)
			if len(want) == 0 || want[0].At != at {
				want = append([]told{{At: at}}, want...)
			}
			want[0].Counts.Add(&c)
		}
		from := max(oldest, cell(rapid.IntRange(90, 200).Draw(t, "from")))
		var got, wanted []told
		for _, w := range want {
			if w.At >= from {
				wanted = append(wanted, w)
			}
		}
		r.back(from, func(at cell, c *Counts) bool {
			got = append(got, told{at, *c})
			return true
		})
		if d := cmp.Diff(wanted, got); d != "" {
			t.Errorf("the cells (-want +got):\n%s", d)
		}
	})
}

func TestRecordsAreNeverMoreThanTheyMayBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r records
		const most = 2000
		var last Counts
		for at := range cell(200) {
			last = drawn(t)
			r.add(at, &last, 0, most)
			if len(r.data) > most {
				t.Fatalf("%d bytes, want at most %d", len(r.data), most)
			}
		}
		r.back(199, func(at cell, c *Counts) bool {
			if at != 199 || *c != last {
				t.Error("the last one is not there")
			}
			return true
		})
	})
}
