// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// world is a service with a canary, seen by proxies.
type world struct {
	perMinute int
	share     float64
	// fresh says that the control is a fresh one, with as many requests as the canary.
	fresh bool
	// shares of the stages of five minutes each, instead of one share in one stage.
	shares []float64
	base   float64
	// factor of the canary's error rate, and of that of both arms, by seconds.
	factor, both func(seconds int) float64
	// burst is how many errors come at once.
	burst int
	// proxies by their weight, over parts.
	proxies []float64
	parts   int
	users   *users
	// slow is the canary's factor of slow requests; 0 for no latencies.
	slow float64
	// check is how long a cohort check lasts before the run, in seconds.
	check   int
	minutes int
	// culprit is a proxy that holds all the canary's errors; -1 for none.
	culprit int
	config  func(*Config)
	// threshold is the health threshold of each stage, in hundredths of a percent.
	threshold int
}

// users are sticky.
type users struct {
	n     int
	bad   float64 // the part that owns all errors
	tail  float64 // of the Pareto distribution of their requests; 0 for equal ones
	drawn struct{ canary, canaryBad, control, controlBad float64 }
}

func equal(n int) []float64 { return slices.Repeat([]float64{1 / float64(n)}, n) }

func zipf(n int) []float64 {
	w, sum := make([]float64, n), 0.0
	for i := range w {
		w[i] = 1 / float64(i+1)
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

func always(f float64) func(int) float64 { return func(int) float64 { return f } }

// usual is the world of the tables: no difference between the arms.
func usual() world {
	return world{
		perMinute: 3000, share: 0.1, base: 0.003, factor: always(1), both: always(1), burst: 1,
		proxies: equal(10), parts: 2, minutes: 20, culprit: -1, config: func(*Config) {}, threshold: 9500,
	}
}

// draw the cohorts.
func (u *users) draw(random *rand.Rand, share float64) {
	u.drawn.canary, u.drawn.canaryBad, u.drawn.control, u.drawn.controlBad = 0, 0, 0, 0
	total := 0.0
	for i := range u.n {
		weight := 1.0
		if u.tail > 0 {
			weight = math.Pow(1-random.Float64(), -1/u.tail)
		}
		total += weight
		bad := float64(i) < u.bad*float64(u.n)
		switch canary := random.Float64() < share; {
		case canary && bad:
			u.drawn.canaryBad += weight
		case canary:
			u.drawn.canary += weight
		case bad:
			u.drawn.controlBad += weight
		default:
			u.drawn.control += weight
		}
	}
	for _, d := range []*float64{&u.drawn.canary, &u.drawn.canaryBad, &u.drawn.control, &u.drawn.controlBad} {
		*d /= total
	}
}

// poisson draws a number of events.
func poisson(random *rand.Rand, mean float64) uint64 {
	if mean <= 0 {
		return 0
	}
	if mean > 60 {
		return uint64(max(0, math.Round(mean+math.Sqrt(mean)*random.NormFloat64())))
	}
	limit, product := math.Exp(-mean), random.Float64()
	n := uint64(0)
	for product > limit {
		product *= random.Float64()
		n++
	}
	return n
}

// request of one proxy in ten seconds: how many, and how many fail.
func (w *world) requests(random *rand.Rand, canary bool, weight, factor float64) (n, x uint64) {
	perCell := float64(w.perMinute) / 6 * weight
	if w.users != nil {
		good, bad := w.users.drawn.control, w.users.drawn.controlBad
		if canary {
			good, bad = w.users.drawn.canary, w.users.drawn.canaryBad
		}
		all := w.users.drawn.canaryBad + w.users.drawn.controlBad
		g, b := poisson(random, perCell*good), poisson(random, perCell*bad)
		x = min(b, poisson(random, float64(b)*min(1, w.base/all)))
		x += poisson(random, float64(g+b)*w.base*(factor-1)) // a regression meets all users
		return g + b, min(g+b, x)
	}
	share := 1 - w.share
	if canary || w.fresh {
		share = w.share
	}
	n = poisson(random, perCell*share)
	for range poisson(random, float64(n)*w.base*factor/float64(w.burst)) {
		x += uint64(w.burst)
	}
	return n, min(n, x)
}

// cells of ten seconds, of all parts.
func (w *world) cells(random *rand.Rand, at int, sequence uint64, factor, both float64) traffic.Measurement {
	m := traffic.Measurement{Next: traffic.Cursor{}}
	number := uint64(at/10)*2 + 1
	for part := range w.parts {
		name := string(rune('a' + part))
		for arm, variation := range []string{"canary", "stable"} {
			cell := traffic.Cell{
				Part: name, Position: traffic.Position{Epoch: 1, Cell: number + uint64(arm)}, Variation: variation, Port: 80,
				Start: noon.Add(time.Duration(at) * time.Second), From: noon.Add(time.Duration(at-5) * time.Second), Sequence: sequence,
			}
			for i := part; i < len(w.proxies); i += w.parts {
				f := both
				if arm == 0 {
					f *= factor
				}
				n, x := w.requests(random, arm == 0, w.proxies[i], f)
				if arm == 0 && i == w.culprit {
					x = n / 2
				}
				report(&cell, uint64(i)+1, n, x)
			}
			if w.slow > 0 {
				cell.Latency = w.latencies(random, cell.Over, arm == 0)
			}
			cell.Coverage.Expected, cell.Coverage.Telling = cell.Spread.Proxies, cell.Spread.Proxies
			m.Cells = append(m.Cells, cell)
		}
		m.Next[name] = traffic.Position{Epoch: 1, Cell: number + 1}
	}
	return m
}

// latencies in eight buckets; of a hundred requests one is in the last but one.
func (w *world) latencies(random *rand.Rand, n uint64, canary bool) []uint64 {
	out := make([]uint64, 8)
	slow := 0.008
	if canary {
		slow *= w.slow
	}
	late := poisson(random, float64(n)*slow/float64(w.burst)) * uint64(w.burst)
	late = min(n, late)
	out[6] = late
	out[5] = min(n-late, poisson(random, float64(n)*0.02))
	out[2] = n - out[5] - out[6]
	return out
}

// report adds what a proxy tells to a cell.
func report(cell *traffic.Cell, id, n, x uint64) {
	cell.Over, cell.Failed = cell.Over+n, cell.Failed+x
	s := &cell.Spread
	s.Proxies++
	s.N, s.X = s.N+n, s.X+x
	s.NN += float64(n) * float64(n)
	s.XN += float64(n) * float64(x)
	s.XX += float64(x) * float64(x)
	if x > cell.Loudest.X {
		cell.Loudest = traffic.Reporter{ID: id, N: n, X: x}
	}
	if n > cell.Busiest.N {
		cell.Busiest = traffic.Reporter{ID: id, N: n, X: x}
	}
}

// outcome of a run: when it failed, why, and when it passed first; -1 for never.
type outcome struct {
	failed, passed int
	reason         Reason
	last           Assessment
	bothBad        bool
}

// run the world once.
func (w world) run(seed uint64) outcome {
	random := rand.New(rand.NewPCG(seed, 20261102))
	config := DefaultConfig("canary", "stable")
	w.config(&config)
	if w.users != nil {
		drawn := *w.users
		w.users = &drawn
		w.users.draw(random, w.share)
	}
	r0 := DefaultR0
	if w.check > 0 {
		check := New(DefaultR0, 0)
		check.Enter(Stage{Number: 1, Sequences: []uint64{1}})
		for at := 0; at < w.check; at += 10 {
			m := w.cells(random, at, 1, 1, 1)
			check.Count(&config, &m)
		}
		r0, _ = RatioAfterCheck(check)
	}
	state := New(r0, 0)
	before := w.cells(random, -600, 0, 1, 1)
	if w.slow > 0 {
		for i := range before.Cells {
			before.Cells[i].Position.Cell = uint64(i/2)*2 + uint64(i%2) + 1
			before.Cells[i].Latency = w.latencies(random, 20_000, false)
		}
		state.Count(&config, &traffic.Measurement{Cells: before.Cells[:2], Next: traffic.Cursor{}})
		state.parts = nil
	}
	out := outcome{failed: -1, passed: -1}
	for at := 0; at < w.minutes*60; at += 10 {
		number, since := 1, time.Duration(at+10)*time.Second
		if len(w.shares) > 0 {
			number = min(at/300+1, len(w.shares))
			w.share, since = w.shares[number-1], since-time.Duration(number-1)*300*time.Second
		}
		state.Enter(Stage{Number: number, Sequences: []uint64{uint64(number) + 6}})
		m := w.cells(random, at, uint64(number)+6, w.factor(at), w.both(at))
		state.Count(&config, &m)
		out.last = Judge(state, &config, &Facts{
			Now: noon.Add(time.Duration(at+10) * time.Second), HealthThreshold: w.threshold, Minimum: time.Minute, Measured: since, SinceStep: since,
		})
		out.bothBad = out.bothBad || out.last.Verdict == BothBad
		if out.last.Verdict == Fail {
			out.failed, out.reason = at+10, out.last.Reason
			return out
		}
		if out.last.Verdict == Pass && out.passed < 0 {
			out.passed = at + 10
		}
	}
	return out
}

// figures of many runs.
type figures struct {
	runs, failed, passed, bothBad    int
	median, p90, passMedian, passP90 int
}

func (w world) many(runs int) figures {
	var stops, passes []int
	f := figures{runs: runs, median: -1, p90: -1, passMedian: -1, passP90: -1}
	for seed := range runs {
		o := w.run(uint64(seed) + 1)
		if o.failed >= 0 {
			stops = append(stops, o.failed)
		}
		if o.passed >= 0 {
			passes = append(passes, o.passed)
		}
		if o.bothBad {
			f.bothBad++
		}
	}
	f.failed, f.passed = len(stops), len(passes)
	f.median, f.p90 = quantile(stops, runs, 0.5), quantile(stops, runs, 0.9)
	f.passMedian, f.passP90 = quantile(passes, runs, 0.5), quantile(passes, runs, 0.9)
	return f
}

// quantile over all runs, of which some have no time: -1 when it is one of those.
func quantile(times []int, runs int, q float64) int {
	slices.Sort(times)
	i := int(math.Ceil(q*float64(runs))) - 1
	if i >= len(times) {
		return -1
	}
	return times[i]
}
