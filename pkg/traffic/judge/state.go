// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

const (
	maxSequences = 16
	maxParts     = 24
	maxBuckets   = 64
	// minLatencies are the control's latencies below which no threshold is chosen: ten of them are
	// slower.
	minLatencies = 1000
	noBucket     = -1
)

// State has the counts of a run. [New] makes one. One goroutine at a time may use it.
//
// All sums are additive over strata. So a state does not depend on the order in which parts were
// read, but for the voices, which keep few proxies.
type State struct {
	restarts int
	grid     grid
	// errors and latency are the log ratios of the bets above r0, over the whole run.
	errors, latency [bets]int64
	canary, control arm
	stage           stage
	// threshold is the bucket of latency above which a request is slow, and width how many buckets
	// the router has; noBucket while no threshold is known.
	threshold, width int
	parts            []part
	gaps             uint64
	// loudest are the proxies with the most failures of the canary.
	loudest voices
	// recent is for [State.hangs].
	recent [recentCells]recent
	// order is room for the cells of a measurement.
	order []int
}

// stage has the counts of the stage that is under way.
type stage struct {
	number          int
	sequences       []uint64
	latencyFrom     time.Time
	errors, latency [lows + bets]int64
	canary, control arm
	// buckets count the latencies of the canary and of the control.
	buckets, controlBuckets []uint64
	// busiest are the proxies with the most requests of the canary.
	busiest voices
}

// part of a router.
type part struct {
	name string
	at   traffic.Position
	// start of the newest cells, in seconds since 1970, and the proxies of these; fleet are those
	// of the canary.
	start, expected, missing, fleet uint64
	// silent parts were not heard at the last measurement; cells of lost ones are missing since; those
	// that are gone will tell no more.
	silent, lost, gone bool
}

// New returns a state that has counted nothing. r0 is the ratio up to which a canary counts as good
// as the control, from [DefaultR0] to [MaxR0]; another one becomes the nearest of these, and no number
// the default. restarts counts the measurements of the run before this one.
func New(r0 float64, restarts int) *State {
	if math.IsNaN(r0) {
		r0 = DefaultR0
	}
	return &State{
		restarts:  min(max(restarts, 0), MaxRestarts),
		grid:      gridOf(min(max(r0, DefaultR0), MaxR0)),
		threshold: noBucket,
	}
}

// R0 is the ratio up to which a canary counts as good as the control.
func (s *State) R0() float64 { return s.grid.r0 }

// Restarts counts the measurements of the run before this one.
func (s *State) Restarts() int { return s.restarts }

// Restart returns the state of a new measurement, as after a foreign change of a template. It keeps
// the cursor and the bound of slow requests, and halves what is left of alpha. It counts nothing until it
// enters a stage.
func (s *State) Restart() *State {
	next := New(s.grid.r0, s.restarts+1)
	next.threshold, next.width = s.threshold, s.width
	next.parts, next.gaps = slices.Clone(s.parts), s.gaps
	return next
}

// WithRatio returns the state of the run after its cohort check, in which a canary counts as good as the
// control up to a ratio from [DefaultR0] to [MaxR0]. It keeps the cursor, and the latencies of the control for
// the bound of slow requests. It counts nothing until it enters a stage.
func (s *State) WithRatio(r0 float64) *State {
	next := New(r0, s.restarts)
	next.threshold, next.width = s.threshold, s.width
	next.parts, next.gaps = slices.Clone(s.parts), s.gaps
	next.stage.controlBuckets = slices.Clone(s.stage.controlBuckets)
	return next
}

// Counted returns how many cells of the canary and of the control this measurement has counted, and how many
// proxies and parts of the run have lost counts.
func (s *State) Counted() (canary, control, gaps uint64) {
	return s.canary.cells, s.control.cells, s.gaps
}

// Clone returns a copy that shares nothing.
func (s *State) Clone() *State {
	c := *s
	c.order = nil
	c.parts = slices.Clone(s.parts)
	c.stage.sequences = slices.Clone(s.stage.sequences)
	c.stage.buckets, c.stage.controlBuckets = slices.Clone(s.stage.buckets), slices.Clone(s.stage.controlBuckets)
	return &c
}

// Enter begins a stage. Entered again with its number, a stage keeps its sums and takes the
// sequences. A new stage fixes the bound of slow requests: above the bucket of the control's 99th percentile in the
// stage before, or in the time before the first stage; that stays as it was when too little is known.
func (s *State) Enter(next Stage) {
	sequences := slices.Clone(next.Sequences[max(0, len(next.Sequences)-maxSequences):])
	if next.Number == s.stage.number {
		s.stage.sequences, s.stage.latencyFrom = sequences, next.LatencyFrom
		return
	}
	if sum(s.stage.controlBuckets) >= minLatencies {
		if bucket, known := percentile(s.stage.controlBuckets, 0.99); known {
			s.threshold, s.width = bucket, len(s.stage.controlBuckets)
		}
	}
	s.stage = stage{number: next.Number, sequences: sequences, latencyFrom: next.LatencyFrom}
	s.loudest.leave()
}

func sum(counts []uint64) (total uint64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// Cursor is how far the state has read, to measure from there on.
func (s *State) Cursor() traffic.Cursor {
	c := traffic.Cursor{}
	for i := range s.parts {
		if !s.parts[i].gone {
			c[s.parts[i].name] = s.parts[i].at
		}
	}
	return c
}

// heard notes the parts of a measurement, and the cursor after it. held are
// parts of which the last cells were not counted.
func (s *State) heard(m *traffic.Measurement, held map[string]traffic.Position) {
	for i := range s.parts {
		p := &s.parts[i]
		p.silent = slices.Contains(m.Unheard, p.name)
		_, told := m.Next[p.name]
		if p.lost = !p.gone && slices.Contains(m.Lost, p.name); p.lost {
			s.gaps++
		}
		p.gone = !told && (p.gone || p.lost)
	}
	for name, to := range m.Next {
		if at, is := held[name]; is {
			to = at
		}
		if p := s.part(name); before(p.at, to) {
			p.at = to
		}
	}
	s.forget()
}

// part of a name; a new one has read nothing.
func (s *State) part(name string) *part {
	for i := range s.parts {
		if s.parts[i].name == name {
			return &s.parts[i]
		}
	}
	s.parts = append(s.parts, part{name: name})
	slices.SortFunc(s.parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return s.part(name)
}

// forget the oldest parts that are gone, where there are too many.
func (s *State) forget() {
	for len(s.parts) > maxParts {
		oldest := noBucket
		for i, p := range s.parts {
			if p.gone && (oldest < 0 || p.at.Epoch < s.parts[oldest].at.Epoch) {
				oldest = i
			}
		}
		if oldest < 0 {
			return
		}
		s.parts = slices.Delete(s.parts, oldest, oldest+1)
	}
}

// before says that a position comes before another.
func before(a, b traffic.Position) bool {
	return a.Epoch < b.Epoch || a.Epoch == b.Epoch && a.Cell < b.Cell
}

// blind says that more than a fifth of the proxies is silent, or some of their counts are missing.
func (s *State) blind() bool {
	var expected, missing uint64
	for i := range s.parts {
		p := &s.parts[i]
		if p.gone && !p.lost {
			continue
		}
		expected += p.expected
		if p.silent || p.lost {
			missing += p.expected
		} else {
			missing += p.missing
		}
	}
	return missing*blindPart > expected
}

// fleet counts the proxies that tell of the canary.
func (s *State) fleet() (n uint64) {
	for i := range s.parts {
		if !s.parts[i].gone {
			n += s.parts[i].fleet
		}
	}
	return n
}
