// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

func TestWhatIsMissingNeverPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := measure(history(t))
		for i := range m.Cells {
			c := &m.Cells[i].Coverage
			c.Silent = c.Expected
		}
		if got := judged(counted(m)); got.Verdict == Pass {
			t.Fatalf("all proxies are silent, and the canary passes: %+v", got)
		}
		m = measure(history(t))
		for part := range m.Next {
			m.Lost = append(m.Lost, part)
		}
		if got := judged(counted(m)); got.Verdict == Pass {
			t.Fatalf("counts of all parts are lost, and the canary passes: %+v", got)
		}
	})
}

func TestLeavingOutCellsNeverTurnsFailIntoPass(t *testing.T) {
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := usual()
		c := DefaultConfig("canary", "stable")
		whole, part := New(DefaultR0, 0), New(DefaultR0, 0)
		whole.Enter(Stage{Number: 1, Sequences: []uint64{7}})
		part.Enter(Stage{Number: 1, Sequences: []uint64{7}})
		failed := false
		for at := 0; at < 600; at += 10 {
			m := w.cells(random, at, 7, 25, 1)
			whole.Count(&c, &m)
			left := m
			left.Cells = nil
			for i := range m.Cells {
				if random.IntN(2) == 0 {
					left.Cells = append(left.Cells, m.Cells[i])
				}
			}
			part.Count(&c, &left)
			f := Facts{Now: noon, HealthThreshold: 9500, Minimum: time.Minute, Measured: time.Duration(at) * time.Second, SinceStep: time.Hour}
			failed = failed || Judge(whole, &c, &f).Verdict == Fail
			if got := Judge(part, &c, &f); failed && got.Verdict == Pass {
				t.Fatalf("seed %d, %d s: half of the cells passes what all of them failed: %+v", seed, at, got)
			}
		}
		if !failed {
			t.Errorf("seed %d: 25 times as many failures do not fail", seed)
		}
	}
}

func TestTheLastCellsWaitForMore(t *testing.T) {
	for _, part := range []string{"a", "b"} {
		t.Run("as part "+part, func(t *testing.T) { lastCellsWait(t, part) })
	}
}

// lastCellsWait of a part, beside another that has told all.
func lastCellsWait(t *testing.T, part string) {
	t.Helper()
	var history []told
	for _, of := range []string{"a", "b"} {
		for tick := range 2 {
			for _, variation := range []string{"canary", "stable"} {
				history = append(history, told{part: of, tick: tick, port: 80, sequence: 7, variation: variation, proxy: 1, n: 10, x: 3})
			}
		}
	}
	all := measure(history)
	// Of the part the measurement has three of four cells.
	first, rest := all, all
	first.More, first.Next = true, maps.Clone(all.Next)
	cut := slices.IndexFunc(all.Cells, func(c traffic.Cell) bool { return c.Part == part }) + 3
	first.Cells = slices.Delete(slices.Clone(all.Cells), cut, cut+1)
	first.Next[part] = traffic.Position{Epoch: 1, Cell: 3}
	s := counted(first)
	if d := gocmp.Diff(traffic.Cursor{"a": {Epoch: 1, Cell: 2}, "b": {Epoch: 1, Cell: 2}}, s.Cursor()); d != "" {
		t.Errorf("the cursor (-want +got):\n%s", d)
	}
	c := DefaultConfig("canary", "stable")
	s.Count(&c, &rest)
	if d := gocmp.Diff(judged(counted(all)), judged(s)); d != "" {
		t.Errorf("in two measurements (-want +got):\n%s", d)
	}
}
