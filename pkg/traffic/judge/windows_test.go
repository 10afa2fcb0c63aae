// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
)

// windowRule aborts a canary by the success rate in windows of time, as most tools do: each window below the
// floor is a miss, and so many misses abort.
type windowRule struct {
	name string
	// seconds of a window.
	seconds int
	// floor of the success rate, from 0 to 1.
	floor  float64
	misses int
	// late windows pass between the last miss and the abort.
	late int
}

// rates are the success rates of the canary in each window of a run.
func (w world) rates(seed uint64, seconds int) []float64 {
	random := rand.New(rand.NewPCG(seed, 20261102))
	var rates []float64
	n, x := uint64(0), uint64(0)
	for at := 0; at < w.minutes*60; at += 10 {
		m := w.cells(random, at, 7, w.factor(at), w.both(at))
		for i := range m.Cells {
			if c := &m.Cells[i]; c.Variation == "canary" {
				n, x = n+c.Over, x+c.Failed
			}
		}
		if (at+10)%seconds != 0 {
			continue
		}
		if n > 0 {
			rates = append(rates, 1-float64(x)/float64(n))
		} else {
			rates = append(rates, 1) // a window without a request is no miss
		}
		n, x = 0, 0
	}
	return rates
}

// stops returns the second in which the rule aborts; -1 for never.
func (r windowRule) stops(w world, seed uint64) int {
	misses := 0
	for i, rate := range w.rates(seed, r.seconds) {
		if rate >= r.floor {
			continue
		}
		if misses++; misses == r.misses {
			if at := (i + 1 + r.late) * r.seconds; at <= w.minutes*60 {
				return at
			}
			return -1
		}
	}
	return -1
}

// tuned returns the highest floor with which one miss in a run aborts at most one in a hundred of the
// canaries that are like their control.
func tuned(w world, seconds int) float64 {
	const runs = 500
	var lowest []float64
	for seed := range uint64(runs) {
		lowest = append(lowest, slices.Min(w.rates(seed+10_000, seconds)))
	}
	slices.Sort(lowest)
	return lowest[runs/100]
}

// peer judges a world once, and returns the second in which it stops the canary; -1 for never.
type peer struct {
	name  string
	stops func(w world, seed uint64) int
}

func peers() []peer {
	bursts := usual()
	bursts.burst = 5
	minute, five := tuned(bursts, 60), tuned(bursts, 300)
	out := []peer{{"the judge, α = 1 %", func(w world, seed uint64) int { return w.run(seed).failed }}}
	for _, r := range []windowRule{
		{"five windows of 1 min below 99 % (an example of Flagger)", 60, 0.99, 5, 1},
		{"four windows of 5 min below 95 % (an example of Argo Rollouts)", 300, 0.95, 4, 0},
		{fmt.Sprintf("one window of 1 min below %.2f %%, tuned", 100*minute), 60, minute, 1, 0},
		{fmt.Sprintf("one window of 5 min below %.2f %%, tuned", 100*five), 300, five, 1, 0},
	} {
		out = append(out, peer{r.name, r.stops})
	}
	return out
}

// TestTheTableOfWindows prints how soon the judge and fixed windows stop the same canaries, and how many good
// ones, for docs/reference/judge.md.
func TestTheTableOfWindows(t *testing.T) {
	runs := 16
	if os.Getenv("PLUMBLINE_LONG") != "" {
		runs = 1000
	} else {
		t.Log("16 runs of each situation instead of 1,000: PLUMBLINE_LONG is not set")
	}
	worlds := []struct {
		name  string
		alike bool
		world world
	}{
		{"alike", true, usual()},
		{"alike, bursts of 5", true, vary(func(w *world) { w.burst = 5 })()},
		{"alike, both ten times worse for five minutes", true, vary(func(w *world) { w.both = outage(300, 600, 10) })()},
		{"3 times", false, vary(func(w *world) { w.factor = always(3) })()},
		{"10 times", false, vary(func(w *world) { w.factor = always(10) })()},
		{"10 times, bursts of 5", false, vary(func(w *world) { w.factor, w.burst = always(10), 5 })()},
		{"5 % errors", false, vary(func(w *world) { w.factor = always(16.7) })()},
	}
	head, rule := "| Stopped, half of them by |", "|---|"
	for _, w := range worlds {
		head, rule = head+" "+w.name+" |", rule+"---|"
	}
	rows := []string{head, rule}
	for i, p := range peers() {
		row := "| " + p.name + " |"
		for _, w := range worlds {
			var stops []int
			for seed := range uint64(runs) {
				if at := p.stops(w.world, seed+1); at >= 0 {
					stops = append(stops, at)
				}
			}
			row += fmt.Sprintf(" %.1f %% |", percent(len(stops), runs))
			if !w.alike {
				row = row[:len(row)-2] + fmt.Sprintf(", %s |", seen(quantile(stops, runs, 0.5)))
			}
			if i == 0 && w.alike && float64(len(stops)) > allowedOf(runs, DefaultAlpha) {
				t.Errorf("%s: the judge stops %d of %d good canaries", w.name, len(stops), runs)
			}
		}
		t.Log(row)
		rows = append(rows, row)
	}
	if long := runs == 1000; long && runtime.GOARCH == "amd64" { // others may round differently
		checkTable(t, "windows", rows)
	}
}
