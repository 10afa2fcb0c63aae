// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// The bounds of the ratio, by trying many ratios with the formula of docs/reference/judge.md.
func TestTheBoundsOfARatioHoldEachRatioThatIsNotRefuted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type pair struct{ canary, control tally }
		var strata []pair
		for range rapid.IntRange(1, 12).Draw(t, "strata") {
			p := pair{tally{n: float64(rapid.IntRange(1, 300).Draw(t, "canary"))}, tally{n: float64(rapid.IntRange(1, 900).Draw(t, "control"))}}
			p.canary.x = float64(rapid.IntRange(0, int(min(p.canary.n, 30))).Draw(t, "canary's failures"))
			p.control.x = float64(rapid.IntRange(0, int(min(p.control.n, 30))).Draw(t, "control's failures"))
			strata = append(strata, p)
		}
		r0 := rapid.SampledFrom([]float64{DefaultR0, 4, MaxR0}).Draw(t, "r0")
		phi := rapid.SampledFrom([]float64{1, 3}).Draw(t, "phi")
		g := gridOf(r0)
		var logs [lows + bets]int64
		likelihood := func(ratio float64) (l float64) {
			for _, p := range strata {
				of := ratio * p.canary.n / (ratio*p.canary.n + p.control.n)
				l += p.canary.x*math.Log(of) + p.control.x*math.Log(1-of)
			}
			return l
		}
		bet := math.Exp(likelihood(r0)-likelihood(1)) / (lows + bets + 1)
		for i := range logs {
			for _, p := range strata {
				logs[i] += g.logRatio(i, p.canary, p.control)
			}
			bet += math.Exp(likelihood(g.ratio[i])-likelihood(1)) / (lows + bets + 1)
		}
		got := ratioBounds(&g, &logs, phi, Shown)
		if got.Upper > 0 && got.Upper < got.Lower {
			t.Fatalf("the bounds are %v", got)
		}
		limit := math.Log(bet) - phi*math.Log(1/Shown)
		for ratio := 1.0 / 31; ratio < 31; ratio *= 1.01 {
			refuted := likelihood(ratio)-likelihood(1) <= limit-1e-4
			within := ratio >= got.Lower && (got.Upper == 0 || ratio <= got.Upper)
			if !refuted && !within {
				t.Fatalf("%v is not refuted, and not within %v", ratio, got)
			}
			inside := ratio > max(0.045, got.Lower*1.15) && (got.Upper == 0 && ratio < 25 || ratio < got.Upper/1.15) // the grid begins at 0.038
			if refuted && inside {
				t.Fatalf("%v is refuted, and well within %v", ratio, got)
			}
		}
	})
}

// A stage passes at the first moment at which its bounds allow it, so these are looked at as often.
func TestTheBoundsOfARateHoldAtEachMoment(t *testing.T) {
	const runs, requests = 100, 2000
	for _, rate := range []float64{0.003, 0.05, 0.5} {
		missed := 0
		for seed := range uint64(runs) {
			random := rand.New(rand.NewPCG(seed, 5))
			x := uint64(0)
			for n := uint64(1); n <= requests; n++ {
				failed := random.Float64() < rate
				if failed {
					x++
				}
				if !failed && n%100 != 0 || failed && rate > 0.1 && n%10 != 0 {
					continue
				}
				if b := rateBounds(n, x, 1, Shown); b.Lower > rate || b.Upper < rate {
					missed++
					break
				}
			}
		}
		t.Logf("rate %v: missed in %d of %d runs", rate, missed, runs)
		if missed > runs*5/100 {
			t.Errorf("bounds of %v do not hold in %d of %d runs, want at most 5 %%", rate, missed, runs)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	w := usual()
	w.slow = 1
	random := rand.New(rand.NewPCG(1, 1))
	c := DefaultConfig("canary", "stable")
	s := New(DefaultR0, 0)
	s.threshold, s.width = 5, 8
	s.Enter(Stage{Number: 1, Sequences: []uint64{7}})
	m := w.cells(random, 0, 7, 10, 1)
	s.Count(&c, &m)
	b.ReportAllocs()
	for b.Loop() {
		for i := range m.Cells {
			at := &m.Cells[i]
			at.Position.Cell += 2
			m.Next[at.Part] = at.Position
		}
		s.Count(&c, &m)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(m.Cells)), "ns/cell")
}

func BenchmarkJudge(b *testing.B) {
	s := busy(3)
	c := DefaultConfig("canary", "stable")
	f := Facts{Now: noon, HealthThreshold: 9500}
	b.ReportAllocs()
	for b.Loop() {
		Judge(s, &c, &f)
	}
}

func BenchmarkCheckpoint(b *testing.B) {
	s := busy(6)
	var data []byte
	for b.Loop() {
		data = encoded(b, s)
		decoded(b, data)
	}
	b.ReportMetric(float64(len(data)), "bytes")
}
