// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// told is what one proxy told of one arm in a stratum.
type told struct {
	part      string
	tick      int
	port      uint16
	sequence  uint64
	variation string
	proxy     uint64
	n, x      uint64
}

// history of a run: what all proxies told.
func history(t *rapid.T) []told {
	var out []told
	ticks := rapid.IntRange(1, 6).Draw(t, "ticks")
	worse := rapid.SampledFrom([]uint64{1, 3, 20}).Draw(t, "worse")
	for tick := range ticks {
		for _, part := range []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "parts")] {
			for range rapid.IntRange(0, 4).Draw(t, "told") {
				one := told{
					part: part, tick: tick, port: rapid.SampledFrom([]uint16{80, 81}).Draw(t, "port"),
					sequence:  rapid.SampledFrom([]uint64{0, 6, 7, 8}).Draw(t, "sequence"),
					variation: rapid.SampledFrom([]string{"canary", "stable", "other"}).Draw(t, "variation"),
					proxy:     rapid.Uint64Range(1, maxVoices).Draw(t, "proxy"), n: rapid.Uint64Range(1, 400).Draw(t, "n"),
				}
				most := min(one.n, 4)
				if one.variation == "canary" {
					most = min(one.n, most*worse)
				}
				one.x = rapid.Uint64Range(0, most).Draw(t, "x")
				if !slices.ContainsFunc(out, one.same) {
					out = append(out, one)
				}
			}
		}
	}
	return out
}

// same says that both are of the same proxy and cell.
func (o told) same(other told) bool {
	o.n, o.x = other.n, other.x
	return o == other
}

// measure has the cells of a history, part by part.
func measure(all []told) traffic.Measurement {
	m := traffic.Measurement{Next: traffic.Cursor{}}
	byCell := slices.Clone(all)
	slices.SortStableFunc(byCell, func(a, b told) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.tick, b.tick), cmp.Compare(a.port, b.port), cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.variation, b.variation))
	})
	var before told
	for _, one := range byCell {
		position := m.Next[one.part]
		if one.part != before.part || one.tick != before.tick || one.port != before.port || one.sequence != before.sequence || one.variation != before.variation {
			position = traffic.Position{Epoch: 1, Cell: position.Cell + 1}
			start := noon.Add(time.Duration(one.tick) * 10 * time.Second)
			m.Cells = append(m.Cells, traffic.Cell{Part: one.part, Position: position, Variation: one.variation, Port: one.port, Start: start, From: start, Sequence: one.sequence})
		}
		cell := &m.Cells[len(m.Cells)-1]
		report(cell, one.proxy, one.n, one.x)
		cell.Coverage.Expected, cell.Coverage.Telling = cell.Spread.Proxies, cell.Spread.Proxies
		cell.Latency = []uint64{cell.Over - cell.Failed, cell.Failed}
		m.Next[one.part], before = position, one
	}
	return m
}

// counted is the state of a history, of which stage 2 has the sequences 7 and 8.
func counted(m traffic.Measurement) *State {
	s := New(DefaultR0, 0)
	s.threshold, s.width = 0, 2
	s.Enter(Stage{Number: 2, Sequences: []uint64{7, 8}})
	c := DefaultConfig("canary", "stable")
	s.Count(&c, &m)
	return s
}

func judged(s *State) Assessment {
	c := DefaultConfig("canary", "stable")
	return Judge(s, &c, &Facts{Now: noon, HealthThreshold: 9500, Measured: time.Hour, SinceStep: time.Hour})
}

// naive computes what the bet on errors has paid and the dispersion from the formulas of
// docs/reference/judge.md, without any sum.
func naive(all []told) (paid, phi float64) {
	type key struct {
		part     string
		tick     int
		port     uint16
		sequence uint64
	}
	strata := map[key]map[string][2]float64{}
	for _, one := range all {
		k := key{one.part, one.tick, one.port, one.sequence}
		if strata[k] == nil {
			strata[k] = map[string][2]float64{}
		}
		sum := strata[k][one.variation]
		strata[k][one.variation] = [2]float64{sum[0] + float64(one.n), sum[1] + float64(one.x)}
	}
	product := func(r float64, stage bool) float64 {
		out := 1.0
		for k, arms := range strata {
			canary, control := arms["canary"], arms["stable"]
			if canary[0] == 0 || control[0] == 0 || stage && k.sequence < 7 {
				continue
			}
			p := func(r float64) float64 { return r * canary[0] / (r*canary[0] + control[0]) }
			out *= math.Pow(p(r)/p(DefaultR0), canary[1]) * math.Pow((1-p(r))/(1-p(DefaultR0)), control[1])
		}
		return out
	}
	run, stage := 0.0, 0.0
	for i := range 16 {
		r := DefaultR0 * math.Pow(30/DefaultR0, (float64(i)+0.5)/16)
		run, stage = run+product(r, false)/16, stage+product(r, true)/16
	}
	var residue, failures float64
	for _, arm := range []string{"canary", "stable"} {
		var units []told
		var n, x float64
		for _, one := range all {
			if one.variation == arm {
				units, n, x = append(units, one), n+float64(one.n), x+float64(one.x)
			}
		}
		failures += x
		if len(units) < 2 {
			continue
		}
		for _, one := range units {
			residue += math.Pow(float64(one.x)-float64(one.n)*x/n, 2) * float64(len(units)) / float64(len(units)-1)
		}
	}
	return 0.8*run + 0.1*stage + 0.1, max(1, residue/max(failures, 1))
}

func TestTheBetIsThatOfTheNaiveFormulas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := history(t)
		c := DefaultConfig("canary", "stable")
		j := counted(measure(all)).judgment(&c, &Facts{})
		paid, phi := naive(all)
		if math.Abs(j.phi-phi) > 1e-6*phi {
			t.Fatalf("phi is %v, want %v", j.phi, phi)
		}
		if got, want := j.logE(nil)*phi, math.Log(paid); math.Abs(got-want) > 1e-3 {
			t.Fatalf("the logarithm of what was paid is %v, want %v", got, want)
		}
	})
}

func TestTheOrderOfPartsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := measure(history(t))
		shuffled := m
		parts := rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "order")
		s := New(DefaultR0, 0)
		s.threshold, s.width = 0, 2
		s.Enter(Stage{Number: 2, Sequences: []uint64{7, 8}})
		c := DefaultConfig("canary", "stable")
		at := rapid.IntRange(0, 6).Draw(t, "first measurement up to")
		for _, first := range []bool{true, false} {
			shuffled.Cells, shuffled.Next = nil, traffic.Cursor{}
			for _, part := range parts {
				for _, cell := range m.Cells {
					if cell.Part == part && (cell.Start.Before(noon.Add(time.Duration(at)*10*time.Second)) == first) {
						shuffled.Cells = append(shuffled.Cells, cell)
						shuffled.Next[part] = cell.Position
					}
				}
			}
			s.Count(&c, &shuffled)
		}
		if d := gocmp.Diff(judged(counted(m)), judged(s)); d != "" {
			t.Fatalf("in another order (-want +got):\n%s", d)
		}
	})
}

func TestCellsThatComeAgainChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := measure(history(t))
		s := counted(m)
		before := fmt.Sprintf("%x", encoded(t, s))
		c := DefaultConfig("canary", "stable")
		m.Cells = m.Cells[rapid.IntRange(0, len(m.Cells)).Draw(t, "from"):]
		s.Count(&c, &m)
		if after := fmt.Sprintf("%x", encoded(t, s)); before != after {
			t.Fatalf("the checkpoint before and after:\n%s\n%s", before, after)
		}
	})
}

func TestMoreFailuresOfTheCanarySpeakAgainstIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := history(t)
		c := DefaultConfig("canary", "stable")
		less := counted(measure(all)).judgment(&c, &Facts{})
		i := rapid.IntRange(0, max(0, len(all)-1)).Draw(t, "which")
		if len(all) == 0 || all[i].x == all[i].n || all[i].variation == "other" {
			return
		}
		all[i].x++
		more := counted(measure(all)).judgment(&c, &Facts{})
		// Without the dispersion, which one failure more may raise or lower.
		less.phi, more.phi = 1, 1
		less.stagePhi, more.stagePhi = 1, 1
		a, b := less.logE(nil), more.logE(nil)
		lower, higher := less.bounds(nil), more.bounds(nil)
		if all[i].variation == "stable" {
			a, b, lower, higher = b, a, higher, lower
		}
		if b < a-1e-4 || higher.Lower < lower.Lower || higher.Upper < lower.Upper {
			t.Fatalf("with one more failure of %s: the bet %v becomes %v, the bounds %v become %v", all[i].variation, a, b, lower, higher)
		}
	})
}
