// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

var begun = time.Date(2026, 3, 1, 12, 0, 3, 0, time.UTC)

// twin keeps all that it is told, and sorts it out when it is read.
type twin struct {
	cells map[Release][]traffic.Cell
	looks map[Release][]Look
}

// told is what the twin takes for the first telling of a cell.
func (w *twin) told(of Release, c *traffic.Cell) bool {
	return !slices.ContainsFunc(w.cells[of], func(o traffic.Cell) bool {
		return o.Part == c.Part && (o.Position.Epoch > c.Position.Epoch || o.Position.Epoch == c.Position.Epoch && o.Position.Cell >= c.Position.Cell)
	})
}

func (w *twin) read(of Release, now time.Time) Series {
	s := Series{Since: begun, Cells: []Cell{}, Looks: []Look{}}
	if from := now.Add(-time.Hour); from.After(begun) {
		s.Since = from
	}
	sums := map[string]*Cell{}
	for i := range w.cells[of] {
		c := &w.cells[of][i]
		start := c.Start.Truncate(10 * time.Second)
		if start.Before(now.Add(-time.Hour)) {
			continue
		}
		key := fmt.Sprint(start.UnixNano(), c.Variation)
		if sums[key] == nil {
			sums[key] = &Cell{Start: start, Variation: c.Variation}
		}
		sums[key].Requests += c.Over
		sums[key].Failed += c.Failed
		sums[key].ClientErrors += c.ClientErrors
		sums[key].FailedOver += c.FailedOver
	}
	for _, c := range sums {
		s.Cells = append(s.Cells, *c)
	}
	slices.SortFunc(s.Cells, func(x, y Cell) int {
		return cmp.Or(x.Start.Compare(y.Start), cmp.Compare(x.Variation, y.Variation))
	})
	last := map[time.Time]Look{}
	for _, l := range w.looks[of] {
		last[l.Time.Truncate(10*time.Second)] = l
	}
	for _, l := range last {
		if !l.Time.Before(now.Add(-time.Hour)) {
			s.Looks = append(s.Looks, l)
		}
	}
	slices.SortFunc(s.Looks, func(x, y Look) int { return x.Time.Compare(y.Time) })
	return s
}

func drawCell(t *rapid.T, now time.Time) traffic.Cell {
	over := rapid.Uint64Range(0, 100).Draw(t, "over")
	return traffic.Cell{
		Part:      rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "part"),
		Position:  traffic.Position{Epoch: rapid.Int64Range(1, 2).Draw(t, "epoch"), Cell: rapid.Uint64Range(1, 40).Draw(t, "cell")},
		Variation: rapid.SampledFrom([]string{"stable", "canary"}).Draw(t, "variation"),
		Start:     now.Add(-time.Duration(rapid.IntRange(-30, 4200).Draw(t, "age")) * time.Second),
		Over:      over, Failed: over / 7, ClientErrors: over / 5, FailedOver: over / 3,
	}
}

func TestASeriesIsThatOfATwinThatKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		releases := []Release{{"shop", "web", "u1"}, {"shop", "cart", "u2"}, {"bank", "web", "u3"}}
		b, w, now := New(begun), &twin{cells: map[Release][]traffic.Cell{}, looks: map[Release][]Look{}}, begun
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "pass")) * time.Second)
			of := rapid.SampledFrom(releases).Draw(t, "release")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				var cells []traffic.Cell
				for range rapid.IntRange(0, 3).Draw(t, "cells") {
					c := drawCell(t, now)
					cells = append(cells, c)
					if w.told(of, &c) {
						w.cells[of] = append(w.cells[of], c)
					}
				}
				b.Count(of, cells, now)
			case 1:
				look := Look{Time: now, Run: 2, Stage: rapid.Int32Range(1, 3).Draw(t, "stage"), Verdict: judge.Undecided, Errors: Bet{E: rapid.Float64Range(0, 200).Draw(t, "e")}}
				w.looks[of] = append(w.looks[of], look)
				b.Note(of, look, now)
			case 2:
				if diff := gocmp.Diff(w.read(of, now), b.Read(of, now)); diff != "" {
					t.Fatalf("%v at %v (-twin +book):\n%s", of, now, diff)
				}
			}
		}
		for _, of := range releases {
			if diff := gocmp.Diff(w.read(of, now), b.Read(of, now)); diff != "" {
				t.Fatalf("%v at the end (-twin +book):\n%s", of, diff)
			}
		}
	})
}

// The bounds hold whatever is told, and nothing since Since is missing of what was told.
func TestABookThatDropsSomethingSaysSinceWhenItIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, now := New(begun), begun
		variations, releases := rapid.IntRange(1, 14).Draw(t, "variations"), rapid.IntRange(1, 80).Draw(t, "releases")
		type telling struct {
			of Release
			Cell
		}
		var told []telling
		for position := range rapid.Uint64Range(1, 12).Draw(t, "times") {
			now = now.Add(time.Duration(rapid.IntRange(10, 1000).Draw(t, "pass")) * time.Second)
			for r := range releases {
				of, cells := Release{"shop", fmt.Sprint(r), "u"}, []traffic.Cell{}
				for v := range variations {
					c := traffic.Cell{Part: "a", Position: traffic.Position{Epoch: 1, Cell: position*100 + uint64(v) + 1}, Variation: fmt.Sprint(v), Start: now.Add(-10 * time.Second), Over: 1}
					cells = append(cells, c)
					told = append(told, telling{of, Cell{Start: c.Start.Truncate(Step), Variation: c.Variation, Requests: 1}})
				}
				b.Count(of, cells, now)
			}
			if len(b.releases) > MaxReleases {
				t.Fatalf("%d releases are kept", len(b.releases))
			}
		}
		for _, one := range told {
			s := b.Read(one.of, now)
			if len(s.Cells) > MaxCells {
				t.Fatalf("%d cells are kept", len(s.Cells))
			}
			if !one.Start.Before(s.Since) && !slices.Contains(s.Cells, one.Cell) {
				t.Fatalf("the cell of %s at %v is missing since %v", one.Variation, one.Start, s.Since)
			}
		}
	})
}

// fill tells the cells of an hour and more, of so many variations.
func fill(b *Book, of Release, variations int) (now time.Time) {
	now = begun
	for position := range uint64(500) {
		now = now.Add(Step)
		var cells []traffic.Cell
		for v := range variations {
			cells = append(cells, traffic.Cell{
				Part: "a", Position: traffic.Position{Epoch: 1, Cell: position*100 + uint64(v) + 1}, Variation: fmt.Sprint(v), Start: now.Add(-Step), Over: 1,
			})
		}
		b.Count(of, cells, now)
		b.Note(of, Look{Time: now}, now)
	}
	return now
}

func TestAReleaseOfManyVariationsIsBounded(t *testing.T) {
	b, of := New(begun), Release{"shop", "web", "u"}
	now := fill(b, of, 12)
	s := b.Read(of, now)
	if len(s.Cells) != MaxCells || len(s.Looks) != MaxLooks {
		t.Errorf("%d cells and %d looks are kept", len(s.Cells), len(s.Looks))
	}
	if whole := now.Add(-Window * 9 / 12); s.Since.Sub(whole).Abs() > 2*Step {
		t.Errorf("the series is whole since %v, want %v", s.Since, whole)
	}
}

func TestAnotherReleaseBegins(t *testing.T) {
	b, of := New(begun), Release{"shop", "web", "u"}
	now := fill(b, of, 2)
	again := Release{"shop", "web", "another uid"}
	if s := b.Read(again, now); len(s.Cells)+len(s.Looks) > 0 {
		t.Errorf("a release has the series of the one before with its name: %d cells", len(s.Cells))
	}
	b.Note(again, Look{Time: now}, now)
	if s := b.Read(again, now); len(s.Cells) != 0 || len(s.Looks) != 1 {
		t.Errorf("%d cells, %d looks", len(s.Cells), len(s.Looks))
	}
	b.Forget("shop", "web")
	if s := b.Read(again, now); len(s.Looks) != 0 {
		t.Errorf("a release that is gone has %d looks", len(s.Looks))
	}
}

// A leader whose clock a part is far ahead of would otherwise keep cells that never grow old.
func TestACellOfTheFutureIsLeftOut(t *testing.T) {
	b, of := New(begun), Release{"shop", "web", "u"}
	b.Count(of, []traffic.Cell{{Part: "a", Position: traffic.Position{Epoch: 1, Cell: 1}, Variation: "stable", Start: begun.Add(2 * time.Minute), Over: 1}}, begun)
	if s := b.Read(of, begun); len(s.Cells) != 0 {
		t.Errorf("kept are %+v", s.Cells)
	}
}

func BenchmarkAnHour(b *testing.B) {
	for b.Loop() {
		fill(New(begun), Release{"shop", "web", "u"}, 3)
	}
}
