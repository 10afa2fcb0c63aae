// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// longRun is a release with more lines and works than one snapshot is apart from the next.
func longRun(step func(*world)) {
	w := newWorld()
	for i := range 26 {
		w.decide("canary.stage_started", int32(i))
		w.decide("canary.stage_passed", int32(i))
		made := w.ask(v1alpha1.WorkScale, int32(i%3))
		w.intend(made, fmt.Sprint(i))
		if i%2 == 0 {
			step(w)
		}
		w.end(made, v1alpha1.WorkSucceeded)
		step(w)
		w.works = w.works[max(0, len(w.works)-24):]
	}
}

// TestAWriterThatDiesAtAnyWriteLeavesNoHole ends the writer before and after each of its writes, and has
// another writer go on. The chain is the same as that of a writer that lived.
func TestAWriterThatDiesAtAnyWriteLeavesNoHole(t *testing.T) {
	alive := &chain{bodies: map[string][]byte{}}
	longRun(func(w *world) {
		if err := alive.look(t, w.facts()); err != nil {
			t.Fatal(err)
		}
	})
	if len(alive.bodies) == 0 {
		t.Fatal("there was no snapshot, so this proves little")
	}
	for cut := 1; cut <= alive.writes; cut++ {
		for _, early := range []bool{true, false} {
			hurt := &chain{bodies: map[string][]byte{}, cut: cut, early: early}
			longRun(func(w *world) {
				if err := hurt.look(t, w.facts()); err != nil && !errors.Is(err, errCut) {
					t.Fatal(err)
				}
				if hurt.writes >= hurt.cut { // the next writer comes at once
					if err := hurt.look(t, w.facts()); err != nil {
						t.Fatal(err)
					}
				}
			})
			if diff := cmp.Diff(alive.told(all...), hurt.told(all...)); diff != "" {
				t.Fatalf("cut at write %d, early: %t (-alive +hurt):\n%s", cut, early, diff)
			}
			unique(t, hurt)
		}
	}
}

// TestEachDecisionAndWorkIsToldOnceInOrder has a release go on at random, and writers look and die at
// random. A naive twin notes all that happened.
func TestEachDecisionAndWorkIsToldOnceInOrder(t *testing.T) {
	cuts, gaps := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w, c := newWorld(), &chain{bodies: map[string][]byte{}}
		var lines []int64
		ends := map[string]bool{}
		look := func() {
			err := c.look(t, w.facts())
			if err != nil && !errors.Is(err, errCut) {
				t.Fatalf("%v", err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"decide": func(t *rapid.T) {
				for range rapid.IntRange(1, 70).Draw(t, "lines") {
					lines = append(lines, w.decide("canary.stage_started", 10))
				}
			},
			"work": func(t *rapid.T) {
				made := w.ask(v1alpha1.WorkScale, rapid.Int32Range(0, 2).Draw(t, "replicas"))
				for i := range rapid.IntRange(0, 2).Draw(t, "intents") {
					w.intend(made, fmt.Sprint(i))
					look()
				}
				w.end(made, rapid.SampledFrom([]v1alpha1.ReleaseWorkPhase{v1alpha1.WorkSucceeded, v1alpha1.WorkRefused, v1alpha1.WorkFailed}).Draw(t, "phase"))
				ends[made.Name] = true
			},
			"look": func(*rapid.T) { look() },
			"cut": func(t *rapid.T) {
				c.cut, c.early = c.writes+rapid.IntRange(1, 40).Draw(t, "at"), rapid.Bool().Draw(t, "early")
				look()
				if c.writes >= c.cut {
					cuts++
				}
				c.cut = 0
			},
			"sweep": func(*rapid.T) {
				cursors := c.state(t).Cursors
				for len(w.works) > 24 && cursors.HasEnd(&w.works[0]) {
					w.works = w.works[1:]
				}
			},
			"lose a snapshot": func(*rapid.T) {
				for digest := range maps.Clone(c.bodies) {
					delete(c.bodies, digest)
				}
			},
		})
		look()
		unique(t, c)
		var at int64
		for i := range c.records {
			switch d := c.records[i].Delivery; c.records[i].Kind {
			case evidence.KindReleaseDecision:
				if d.Decision.Number != at+1 {
					t.Fatalf("line %d comes after line %d", d.Decision.Number, at)
				}
				at = d.Decision.Number
			case evidence.KindHistoryGap:
				if d.Range.First != at+1 || d.Range.Last < d.Range.First {
					t.Fatalf("a gap %+v after line %d", d.Range, at)
				}
				at = d.Range.Last
				gaps++
			case evidence.KindWorkEnded:
				if !ends[d.Work.Name] {
					t.Fatalf("%s ended twice, or never", d.Work.Name)
				}
				delete(ends, d.Work.Name)
			default:
			}
		}
		if at != int64(len(lines)) || len(ends) > 0 {
			t.Fatalf("%d of %d lines are told, and these ends are not: %v", at, len(lines), ends)
		}
	})
	if cuts == 0 || gaps == 0 {
		t.Fatalf("%d cuts and %d gaps, so this proves little", cuts, gaps)
	}
}
