// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// maxOver is how many requests of a cell are believed.
const maxOver = 1 << 32

// Count adds the cells after the cursor of the state. Before the first stage this is the
// control's latency alone, because the canary of that time is none of this run's. Cells at or before the cursor change
// nothing, so a measurement may come twice. While there are more cells, the last ten seconds of each
// part wait for the next measurement, because the other arm's cell may be missing.
func (s *State) Count(c *Config, m *traffic.Measurement) {
	s.order = s.order[:0]
	for i := range m.Cells {
		if s.counts(&m.Cells[i]) {
			s.order = append(s.order, i)
		}
	}
	cells := m.Cells
	slices.SortFunc(s.order, func(a, b int) int { return compare(&cells[a], &cells[b]) })
	s.order = slices.CompactFunc(s.order, func(a, b int) bool { return compare(&cells[a], &cells[b]) == 0 })
	var held map[string]traffic.Position
	if m.More {
		held = map[string]traffic.Position{}
	}
	for order := s.order; len(order) > 0; {
		n := together(cells, order)
		if last := n == len(order) || cells[order[n]].Part != cells[order[0]].Part; last && m.More {
			first := cells[order[0]].Position
			held[cells[order[0]].Part] = traffic.Position{Epoch: first.Epoch, Cell: first.Cell - 1}
		} else {
			s.group(c, cells, order[:n])
		}
		order = order[n:]
	}
	s.heard(m, held)
}

// counts says that a cell is possible, and after the cursor.
func (s *State) counts(cell *traffic.Cell) bool {
	for i := range s.parts {
		if s.parts[i].name == cell.Part && !before(s.parts[i].at, cell.Position) {
			return false
		}
	}
	return cell.Position.Cell > 0 && cell.Failed <= cell.Over && cell.Over <= maxOver && possible(&cell.Spread)
}

// possible says that sums over proxies are no more than the squares of the sums.
func possible(s *traffic.Spread) bool {
	n, x := float64(s.N), float64(s.X)
	return s.X <= s.N && s.N <= maxOver && s.Proxies <= maxOver &&
		s.NN >= 0 && s.NN <= n*n && s.XN >= 0 && s.XN <= x*n && s.XX >= 0 && s.XX <= x*x
}

// compare orders cells by part, and as the part told them.
func compare(a, b *traffic.Cell) int {
	if c := strings.Compare(a.Part, b.Part); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Position.Epoch, b.Position.Epoch); c != 0 {
		return c
	}
	return cmp.Compare(a.Position.Cell, b.Position.Cell)
}

// together is how many of the next cells are of the same part and the same ten seconds.
func together(cells []traffic.Cell, order []int) int {
	first := &cells[order[0]]
	n := 1
	for n < len(order) {
		next := &cells[order[n]]
		if next.Part != first.Part || next.Position.Epoch != first.Position.Epoch || !next.Start.Equal(first.Start) {
			break
		}
		n++
	}
	return n
}

// group counts the cells of one part and ten seconds, stratum by stratum.
func (s *State) group(c *Config, cells []traffic.Cell, order []int) {
	last := &cells[order[len(order)-1]]
	p := s.part(last.Part)
	p.at = last.Position
	covered := false
	for i, index := range order {
		cell := &cells[index]
		canary, control := cell.Variation == c.Canary, cell.Variation == c.Control
		if !canary && !control {
			continue
		}
		if !slices.ContainsFunc(order[:i], func(at int) bool { return sameSlot(&cells[at], cell) }) {
			s.gaps += min(cell.Coverage.Gapped, maxOver)
			if start := seconds(cell.Start); !covered && start >= p.start {
				p.start, p.expected, p.missing, p.fleet = start, 0, 0, 0
				covered = true
			}
			if covered {
				p.cover(&cell.Coverage, canary)
			}
		}
		other := c.other(cells, order, cell)
		switch {
		case canary:
			s.stratum(cell, other)
		case other == nil:
			s.stratum(nil, cell)
		}
	}
}

func sameSlot(a, b *traffic.Cell) bool { return a.Variation == b.Variation && a.Port == b.Port }

// other returns the cell of the other arm in the stratum of a cell; nil if there is none.
func (c *Config) other(cells []traffic.Cell, order []int, of *traffic.Cell) *traffic.Cell {
	variation := c.Canary
	if of.Variation == c.Canary {
		variation = c.Control
	}
	for _, index := range order {
		if cell := &cells[index]; cell.Variation == variation && cell.Port == of.Port && cell.Sequence == of.Sequence {
			return cell
		}
	}
	return nil
}

// cover adds the proxies of a slot of the newest cells. It is the same in all strata.
func (p *part) cover(c *traffic.Coverage, canary bool) {
	expected := min(c.Expected, maxOver) + min(c.Refused, maxOver)
	p.expected += expected
	p.missing += min(expected, min(c.Silent, maxOver)+min(c.Gapped, maxOver)+min(c.Refused, maxOver))
	if canary {
		p.fleet = max(p.fleet, min(c.Expected, maxOver))
	}
}

// stratum counts the cells of both arms that belong together; one of them may be missing.
func (s *State) stratum(canary, control *traffic.Cell) {
	if s.stage.number == 0 {
		s.stage.controlBuckets = addBuckets(s.stage.controlBuckets, control)
		return
	}
	cell := canary
	if cell == nil {
		cell = control
	}
	inStage := cell.Sequence != 0 && slices.Contains(s.stage.sequences, cell.Sequence)
	s.countArms(canary, control, inStage)
	a, b := errorsOf(canary), errorsOf(control)
	s.bet(&s.errors, &s.stage.errors, a, b, inStage)
	s.leaveOut(canary, a, b, inStage)
	s.countLatency(canary, control, inStage)
	s.see(cell, a, b)
}

func (s *State) countArms(canary, control *traffic.Cell, inStage bool) {
	if canary != nil {
		s.canary.count(canary)
	}
	if control != nil {
		s.control.count(control)
	}
	if !inStage {
		return
	}
	if canary != nil {
		s.stage.canary.count(canary)
	}
	if control != nil {
		s.stage.control.count(control)
	}
}

// count adds a cell to an arm, but for its latencies.
func (a *arm) count(cell *traffic.Cell) {
	a.cells++
	a.over += cell.Over
	a.failed += cell.Failed
	a.clientErrors += min(cell.ClientErrors, maxOver)
	a.failedOver += min(cell.FailedOver, maxOver)
	if cell.Spread.Proxies > 0 {
		a.errors.spread(&cell.Spread)
	} else if cell.Over > 0 { // a router that does not tell of proxies
		a.errors.unit(cell.Over, cell.Failed)
	}
}

func errorsOf(cell *traffic.Cell) tally {
	if cell == nil {
		return tally{}
	}
	return tally{float64(cell.Over), float64(cell.Failed)}
}

// bet adds a stratum to the log ratios of the run, and to those of the stage.
func (s *State) bet(run *[bets]int64, stage *[lows + bets]int64, canary, control tally, inStage bool) {
	if canary.x+control.x == 0 || canary.n == 0 || control.n == 0 {
		return
	}
	if inStage {
		for i := range lows {
			stage[i] = add(stage[i], s.grid.logRatio(i, canary, control))
		}
	}
	for i := range bets {
		l := s.grid.logRatio(lows+i, canary, control)
		run[i] = add(run[i], l)
		if inStage {
			stage[lows+i] = add(stage[lows+i], l)
		}
	}
}

// leaveOut notes the loss of the bets without the loudest proxy of the canary's cell.
func (s *State) leaveOut(cell *traffic.Cell, canary, control tally, inStage bool) {
	if cell == nil {
		return
	}
	if one := cell.Busiest; inStage && one.X <= one.N && one.N <= cell.Over {
		if v := s.stage.busiest.of(one.ID, one.N); v != nil {
			v.stageN, v.stageX = v.stageN+one.N, v.stageX+one.X
		}
	}
	n, x := cell.Loudest.N, cell.Loudest.X
	if x > n || n > cell.Over || x > cell.Failed {
		return
	}
	v := s.loudest.of(cell.Loudest.ID, x)
	if v == nil {
		return
	}
	v.n, v.x = v.n+n, v.x+x
	if inStage {
		v.stageN, v.stageX = v.stageN+n, v.stageX+x
	}
	without := tally{canary.n - float64(n), canary.x - float64(x)}
	for i := range bets {
		lost := s.grid.logRatio(lows+i, canary, control) - s.grid.logRatio(lows+i, without, control)
		v.errors[i] = add(v.errors[i], lost)
		if inStage {
			v.stageErrors[i] = add(v.stageErrors[i], lost)
		}
	}
}

// countLatency counts the latencies of a stratum: those of the stage by bucket, and all by whether
// they are slow.
func (s *State) countLatency(canary, control *traffic.Cell, inStage bool) {
	a, b := s.latencyOf(canary), s.latencyOf(control)
	if inStage {
		s.stage.buckets = addBuckets(s.stage.buckets, canary)
		s.stage.controlBuckets = addBuckets(s.stage.controlBuckets, control)
	}
	count := func(arm *arm, t tally) {
		if t.n > 0 {
			arm.latency.unit(uint64(t.n), uint64(t.x))
		}
	}
	count(&s.canary, a)
	count(&s.control, b)
	if inStage {
		count(&s.stage.canary, a)
		count(&s.stage.control, b)
	}
	s.bet(&s.latency, &s.stage.latency, a, b, inStage)
}

// latencyOf returns how many requests of a cell have a latency, and how many of these are slow.
func (s *State) latencyOf(cell *traffic.Cell) (t tally) {
	if cell == nil || s.threshold < 0 || len(cell.Latency) != s.width || cell.From.Before(s.stage.latencyFrom) {
		return tally{}
	}
	for i, n := range cell.Latency {
		if n > maxOver {
			return tally{}
		}
		t.n += float64(n)
		if i > s.threshold {
			t.x += float64(n)
		}
	}
	return t
}

// addBuckets adds the latencies of a cell. A router that changes its buckets begins anew.
func addBuckets(to []uint64, cell *traffic.Cell) []uint64 {
	if cell == nil || len(cell.Latency) == 0 || len(cell.Latency) > maxBuckets {
		return to
	}
	if len(to) != len(cell.Latency) {
		to = make([]uint64, len(cell.Latency))
	}
	for i, n := range cell.Latency {
		to[i] += min(n, maxOver)
	}
	return to
}

// seconds since 1970.
func seconds(t time.Time) uint64 { return uint64(max(0, t.Unix())) } //nolint:gosec // it is not negative
