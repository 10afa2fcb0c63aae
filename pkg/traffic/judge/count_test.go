// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// entered is a state in its first stage, with two buckets of latency.
func entered(sequences ...uint64) *State {
	s := New(DefaultR0, 0)
	s.threshold, s.width = 2, 4
	s.Enter(Stage{Number: 1, Sequences: sequences})
	return s
}

// one measurement of cells, all of part a unless they name another.
func one(cells ...traffic.Cell) *traffic.Measurement {
	m := &traffic.Measurement{Next: traffic.Cursor{}}
	for i := range cells {
		c := &cells[i]
		if c.Part == "" {
			c.Part = "a"
		}
		c.Position = traffic.Position{Epoch: 1, Cell: m.Next[c.Part].Cell + 1}
		if c.Start.IsZero() {
			c.Start = noon
		}
		m.Next[c.Part] = c.Position
	}
	m.Cells = cells
	return m
}

func TestTheHealthOfAStageIsToldInFull(t *testing.T) {
	c := DefaultConfig("canary", "stable")
	c.Buckets = []float64{10, 20, 40}
	s := entered(7)
	s.Count(&c, one(
		traffic.Cell{Variation: "canary", Sequence: 7, Over: 100, Failed: 2, ClientErrors: 5, FailedOver: 3, Latency: []uint64{40, 20, 20, 10}, Coverage: traffic.Coverage{Expected: 3, Gapped: 1}},
		traffic.Cell{Variation: "stable", Sequence: 7, Over: 900, Failed: 9, Latency: []uint64{899, 0, 1, 0}},
		traffic.Cell{Variation: "canary", Sequence: 6, Over: 50, Failed: 50, ClientErrors: 1, FailedOver: 1, Latency: []uint64{0, 0, 0, 50}, Coverage: traffic.Coverage{Expected: 3, Gapped: 1}},
	))
	got := Judge(s, &c, &Facts{Now: noon, HealthThreshold: 6000})
	// Bounds are tested by themselves.
	phi := got.Errors.Phi
	bounds := func(n, x uint64, alpha float64) Interval { return rateBounds(n, x, phi, alpha) }
	canary, control := bounds(100, 2, 0.005), bounds(900, 9, 0.005)
	want := Assessment{
		Verdict: got.Verdict, Reason: got.Reason, ClockStands: true, Errors: got.Errors, Latency: got.Latency, SlowerThan: 40, R0: 1.5, Gaps: 1,
		Canary: HealthResult{
			Healthy: false, HealthPercentage: 100 * (1 - canary.Upper), Metrics: Metrics{SuccessRate: 0.98, ErrorRate: 0.02, LatencyP50: 20, LatencyP99: 40},
			Samples: 100, EvaluatedAt: noon, ErrorRate: bounds(100, 2, 0.05), Decides: canary, SlowRate: 10.0 / 90, Cells: 1, ClientErrors: 5, FailedOver: 3,
		},
		Control: HealthResult{
			Healthy: true, HealthPercentage: 100 * (1 - control.Upper), Metrics: Metrics{SuccessRate: 0.99, ErrorRate: 0.01, LatencyP50: 10, LatencyP99: 10},
			Samples: 900, EvaluatedAt: noon, ErrorRate: bounds(900, 9, 0.05), Decides: control, Cells: 1,
		},
		Run: Tally{150, 52}, ControlRun: Tally{900, 9}, // with what was counted before the stage
	}
	if d := gocmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); d != "" {
		t.Errorf("the assessment (-want +got):\n%s", d)
	}
	if got := s.canary; got.cells != 2 || got.over != 150 || got.failed != 52 || got.latency.n != 140 || got.latency.x != 60 || got.clientErrors != 6 || got.failedOver != 4 {
		t.Errorf("of the run is counted %+v", got)
	}
}

func TestARouterThatDoesNotTellOfProxies(t *testing.T) {
	c := DefaultConfig("canary", "stable")
	s := entered(7)
	s.Count(&c, one(
		traffic.Cell{Variation: "canary", Sequence: 7, Over: 100, Failed: 2},
		traffic.Cell{Variation: "stable", Sequence: 7, Start: noon.Add(10 * time.Second)},
	))
	if d := gocmp.Diff(sums{units: 1, n: 100, x: 2, nn: 10_000, xn: 200, xx: 4}, s.canary.errors, gocmp.AllowUnexported(sums{})); d != "" {
		t.Errorf("one unit is counted (-want +got):\n%s", d)
	}
	if got := s.control.errors.units; got != 0 {
		t.Errorf("a cell without requests is %d units, want none", got)
	}
}

func TestALatencyThatIsNotKnownIsZero(t *testing.T) {
	c := DefaultConfig("canary", "stable")
	c.Buckets = []float64{10, 20, 40}
	s := New(DefaultR0, 0)
	s.Enter(Stage{Number: 1, Sequences: []uint64{7}})
	s.Count(&c, one(traffic.Cell{Variation: "canary", Sequence: 7, Over: 100}))
	got := Judge(s, &c, &Facts{Now: noon})
	if got.SlowerThan != 0 || got.Canary.Metrics.LatencyP50 != 0 || got.Canary.Metrics.LatencyP99 != 0 {
		t.Errorf("slower than %v, %+v; want zeros", got.SlowerThan, got.Canary.Metrics)
	}
}

func TestASequenceThatIsNotKnownIsOfNoStage(t *testing.T) {
	c := DefaultConfig("canary", "stable")
	s := entered(0, 1)
	s.Count(&c, one(traffic.Cell{Variation: "canary", Sequence: 0, Over: 100}, traffic.Cell{Variation: "canary", Sequence: 1, Over: 10}))
	if got := s.stage.canary.over; got != 10 {
		t.Errorf("%d requests are of the stage, want the 10 of sequence 1", got)
	}
}

func TestAStageKeepsTheLastSixteenSequences(t *testing.T) {
	var sequences []uint64
	for i := range uint64(maxSequences + 1) {
		sequences = append(sequences, i+1)
	}
	s := entered(sequences...)
	if d := gocmp.Diff(sequences[1:], s.stage.sequences); d != "" {
		t.Errorf("the sequences (-want +got):\n%s", d)
	}
	c := DefaultConfig("canary", "stable")
	s.Count(&c, one(traffic.Cell{Variation: "canary", Sequence: 2, Over: 100}))
	s.Enter(Stage{Number: 1, Sequences: []uint64{99}})
	if s.stage.canary.over != 100 || s.stage.sequences[0] != 99 {
		t.Errorf("entered again, the stage has %d requests and the sequences %v", s.stage.canary.over, s.stage.sequences)
	}
}

func TestCellsThatCannotBeAreLeftOut(t *testing.T) {
	good := func() traffic.Cell {
		return traffic.Cell{Variation: "canary", Sequence: 7, Over: 10, Failed: 2, Spread: traffic.Spread{Proxies: 1, N: 10, X: 2, NN: 100, XN: 20, XX: 4}}
	}
	cases := map[string]func(*traffic.Cell){
		"more failures than requests":           func(c *traffic.Cell) { c.Failed = 11 },
		"more requests than are believed":       func(c *traffic.Cell) { c.Over = maxOver + 1 },
		"more failures than requests of all":    func(c *traffic.Cell) { c.Spread.X = 11 },
		"too many requests of all":              func(c *traffic.Cell) { c.Spread.N = maxOver + 1 },
		"too many proxies":                      func(c *traffic.Cell) { c.Spread.Proxies = maxOver + 1 },
		"squares that are too large":            func(c *traffic.Cell) { c.Spread.NN = 101 },
		"squares of failures too large":         func(c *traffic.Cell) { c.Spread.XX = 5 },
		"products that are too large":           func(c *traffic.Cell) { c.Spread.XN = 21 },
		"negative squares":                      func(c *traffic.Cell) { c.Spread.NN = -1 },
		"negative squares of failures":          func(c *traffic.Cell) { c.Spread.XX = -1 },
		"negative products":                     func(c *traffic.Cell) { c.Spread.XN = -1 },
		"latencies that are too many":           func(c *traffic.Cell) { c.Latency = []uint64{maxOver + 1, 0, 0, 0} },
		"latencies of another number of bounds": func(c *traffic.Cell) { c.Latency = []uint64{1, 2, 3} },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			config := DefaultConfig("canary", "stable")
			cell, s := good(), entered(7)
			change(&cell)
			s.Count(&config, one(cell))
			if latency := cell.Latency != nil; latency && s.canary.latency.n > 0 || !latency && s.canary.over > 0 {
				t.Errorf("it was counted: %+v", s.canary)
			}
		})
	}
	config := DefaultConfig("canary", "stable")
	s := entered(7)
	s.Count(&config, one(good()))
	if s.canary.over != 10 {
		t.Error("a good cell was not counted")
	}
}

func TestProxiesThatCannotBeAreNotLeftOut(t *testing.T) {
	for name, r := range map[string]traffic.Reporter{
		"no proxy":                       {ID: 0, N: 5, X: 1},
		"more failures than requests":    {ID: 1, N: 1, X: 2},
		"more requests than the cell":    {ID: 1, N: 11, X: 1},
		"more failures than of the cell": {ID: 1, N: 9, X: 3},
	} {
		t.Run(name, func(t *testing.T) {
			config := DefaultConfig("canary", "stable")
			s := entered(7)
			s.Count(&config, one(traffic.Cell{Variation: "canary", Sequence: 7, Over: 10, Failed: 2, Loudest: r}))
			if s.loudest != (voices{}) {
				t.Errorf("the loudest are %+v", s.loudest)
			}
			if r.X == 3 {
				return // the busiest may have any
			}
			s.Count(&config, one(traffic.Cell{Part: "b", Variation: "canary", Sequence: 7, Over: 10, Failed: 2, Busiest: r}))
			if s.stage.busiest != (voices{}) {
				t.Errorf("the busiest are %+v", s.stage.busiest)
			}
		})
	}
}

// Left out, a proxy counts as if the canary had not had its requests.
func TestAProxyIsLeftOut(t *testing.T) {
	config := DefaultConfig("canary", "stable")
	all, others := entered(7), entered(7)
	for tick := range 20 {
		start := noon.Add(time.Duration(tick) * 10 * time.Second)
		sequence := 6 + uint64(tick)%2
		canary := traffic.Cell{Variation: "canary", Sequence: sequence, Start: start}
		report(&canary, 1, 20, 5)
		rest := traffic.Cell{Variation: "canary", Sequence: sequence, Start: start}
		for id := range uint64(4) {
			report(&canary, id+2, 10, id%2)
			report(&rest, id+2, 10, id%2)
		}
		stable := traffic.Cell{Variation: "stable", Sequence: sequence, Start: start}
		report(&stable, 1, 500, 2)
		count := func(s *State, canary traffic.Cell) {
			m := one(canary, stable)
			for i := range m.Cells {
				m.Cells[i].Position.Cell = uint64(2*tick + i + 1)
			}
			m.Next = traffic.Cursor{"a": m.Cells[1].Position}
			s.Count(&config, m)
		}
		count(all, canary)
		count(others, rest)
	}
	var left *voice
	for i := range all.loudest {
		if all.loudest[i].proxy == 1 {
			left = &all.loudest[i]
		}
	}
	if left == nil {
		t.Fatalf("the proxy is not among %+v", all.loudest)
	}
	a, b := all.judgment(&config, &Facts{}), others.judgment(&config, &Facts{})
	a.phi, b.phi, a.stagePhi, b.stagePhi = 1, 1, 1, 1
	if got, want := a.logE(left), b.logE(nil); math.Abs(got-want) > 1e-3 {
		t.Errorf("without the proxy the bet has paid %v, want %v", got, want)
	}
	if got, want := a.bounds(left), b.bounds(nil); got != want {
		t.Errorf("without the proxy the bounds are %v, want %v", got, want)
	}
	if got, want := (sums{n: all.canary.over - left.n, x: all.canary.failed - left.x}), (sums{n: others.canary.over, x: others.canary.failed}); got != want {
		t.Errorf("without the proxy there are %+v, want %+v", got, want)
	}
}

func TestManyPartsThatEndAreForgotten(t *testing.T) {
	config := DefaultConfig("canary", "stable")
	s := entered(7)
	for i := range 3 * maxParts {
		name := fmt.Sprintf("%03d", i)
		m := traffic.Measurement{Next: traffic.Cursor{name: {Epoch: int64(i), Cell: 1}}}
		if i > 0 {
			m.Lost = []string{fmt.Sprintf("%03d", i-1)}
		}
		s.Count(&config, &m)
	}
	if n := len(s.parts); n != maxParts {
		t.Errorf("%d parts are kept, want %d", n, maxParts)
	}
}

func TestVoicesKeepTheFrequent(t *testing.T) {
	var v voices
	for i := range uint64(1000) {
		v.of(1, 3) // has three of twelve
		for other := range uint64(9) {
			v.of(100+9*i+other, 1)
		}
	}
	if i := v[0]; i.proxy != 1 && v[1].proxy != 1 && v[2].proxy != 1 && v[3].proxy != 1 {
		t.Errorf("a proxy with a fourth of all is not among %+v", v)
	}
	v = voices{}
	for i := range uint64(maxVoices) {
		v.of(i+1, i+1)
	}
	if got := v.of(9, 3); got == nil || got.credit != 2 {
		t.Fatalf("a new one has %+v, want a credit of 2", got)
	}
	want := map[uint64]uint64{9: 2, 2: 1, 3: 2, 4: 3}
	for i := range v {
		if want[v[i].proxy] != v[i].credit {
			t.Errorf("proxy %d has %d, want %v", v[i].proxy, v[i].credit, want)
		}
	}
	if v.of(10, 1) != nil {
		t.Error("there is room for one with as little as the least")
	}
}

func TestACanaryHangsOnlyIfNoPartSeesAnAnswer(t *testing.T) {
	c := DefaultConfig("canary", "stable")
	for name, answers := range map[string]uint64{"one answer": 1, "no answer": 0} {
		t.Run(name, func(t *testing.T) {
			s := entered(7)
			var cells []traffic.Cell
			for tick := range 4 {
				for _, part := range []string{"a", "b"} {
					start := noon.Add(time.Duration(tick) * 10 * time.Second)
					canary := traffic.Cell{Part: part, Start: start, Variation: "canary", Sequence: 7}
					if tick == 2 && part == "a" {
						canary.Over = answers
					}
					cells = append(cells, canary, traffic.Cell{Part: part, Start: start, Variation: "stable", Sequence: 7, Over: 500})
				}
			}
			s.Count(&c, one(cells...))
			f := Facts{Now: noon, HealthThreshold: 9500, SinceStep: 40 * time.Second, InFlight: 20, ControlInFlight: 180}
			if got := Judge(s, &c, &f); (got.Reason == Hanging) != (answers == 0) {
				t.Errorf("with %d answers: %s by %s", answers, got.Verdict, got.Reason)
			}
			f.SinceStep--
			if got := Judge(s, &c, &f); got.Reason == Hanging {
				t.Error("it hangs right after a step")
			}
		})
	}
}

func TestTheOldestPartsThatAreGoneAreForgotten(t *testing.T) {
	s := New(DefaultR0, 0)
	for i := range maxParts + 2 {
		p := s.part(fmt.Sprintf("%02d", i))
		p.at, p.gone = traffic.Position{Epoch: int64(100 - i), Cell: 1}, i > 0
	}
	s.forget()
	var kept []string
	for _, p := range s.parts {
		kept = append(kept, p.name)
	}
	if n := len(kept); n != maxParts || kept[0] != "00" || kept[n-1] != fmt.Sprintf("%02d", maxParts-1) {
		t.Errorf("kept are %v", kept)
	}
}

func TestTheFirstPartCanBeTheOldestThatIsGone(t *testing.T) {
	s := New(DefaultR0, 0)
	for i := range maxParts + 1 {
		p := s.part(fmt.Sprintf("%02d", i))
		p.at, p.gone = traffic.Position{Epoch: int64(i), Cell: 1}, true
	}
	s.forget()
	if n := len(s.parts); n != maxParts || s.parts[0].name != "01" {
		t.Errorf("%d parts are kept, the first one is %s, want %d from 01 on", n, s.parts[0].name, maxParts)
	}
}

func TestBucketsOfLatencyHaveABound(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, maxBuckets: maxBuckets, maxBuckets + 1: 0} {
		if got := len(addBuckets(nil, &traffic.Cell{Latency: make([]uint64, n)})); got != want {
			t.Errorf("of %d buckets %d are counted, want %d", n, got, want)
		}
	}
	if got := addBuckets([]uint64{1, 2}, &traffic.Cell{Latency: []uint64{5, 5, 5}}); len(got) != 3 || got[0] != 5 {
		t.Errorf("with other buckets the sums are %v, want [5 5 5]", got)
	}
}
