// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAProxyThatCountedNothingHidesNoOther(t *testing.T) {
	w := newWorld(t, Config{})
	w.open("idle", 0)
	w.open("busy", 0)
	w.tell("idle", 1, stable, 1, nil)
	w.tell("busy", 2, stable, 0, answers(3))
	var got []string
	w.Cells("shop", "web", noon, at(60), func(c Cell) bool {
		got = append(got, fmt.Sprint(c.Proxy.UID, " ", c.Counts[Completed]))
		return true
	})
	if d := cmp.Diff([]string{"busy 3"}, got); d != "" {
		t.Errorf("the cells (-want +got):\n%s", d)
	}
}

func TestCellsAreThoseOfTheirService(t *testing.T) {
	w := newWorld(t, Config{})
	w.open("a", 0)
	for i, of := range []Slot{stable, canary, {"shop", "other", 80, "stable"}, {"bank", "web", 80, "stable"}} {
		w.tell("a", float64(i), of, 0, answers(1))
	}
	got := map[Slot]uint64{}
	w.Cells("shop", "web", noon, at(60), func(c Cell) bool {
		got[c.Slot] += c.Counts[Completed]
		return true
	})
	if d := cmp.Diff(map[Slot]uint64{stable: 1, canary: 1}, got); d != "" {
		t.Errorf("the cells (-want +got):\n%s", d)
	}
}

func TestEachCellIsToldOnce(t *testing.T) {
	w := newWorld(t, Config{})
	w.open("a", 0)
	w.open("b", 0)
	got, since := map[string]uint64{}, noon
	for i := range 50 {
		seconds := float64(7 * i)
		w.tell("a", seconds, stable, 0, answers(1))
		w.tell("b", seconds+1, stable, 0, answers(2))
		if i%3 == 0 {
			now := at(seconds + 2)
			w.Cells("shop", "web", since, now, func(c Cell) bool {
				key := fmt.Sprint(c.Proxy.UID, " ", c.Start.Unix())
				if got[key] != 0 || c.Start.Add(Width).After(now) {
					t.Fatalf("%s is told twice, or before it ends", key)
				}
				got[key] = c.Counts[Completed]
				return true
			})
			since = now
		}
	}
	sum := map[byte]uint64{}
	for key, n := range got {
		sum[key[0]] += n
	}
	// The last that has ended by the last question began at 320 s.
	if d := cmp.Diff(map[byte]uint64{'a': 48, 'b': 94}, sum); d != "" {
		t.Errorf("what was told (-want +got):\n%s", d)
	}
	stops := 0
	w.Cells("shop", "web", noon, at(400), func(Cell) bool { stops++; return false })
	if stops != 1 {
		t.Errorf("it goes on %d times", stops)
	}
}
