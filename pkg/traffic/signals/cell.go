// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"hash/fnv"
	"time"
)

// Cell is what the proxies of one replica told of one slot in ten seconds, under one stratum. It
// is closed: nothing is added to it any more.
type Cell struct {
	Slot
	// Start is when the ten seconds began in which the flushes came, by the clock of the replica.
	Start time.Time
	// From and To enclose the time that the flushes tell of, by the same clock.
	From, To time.Time
	Stratum  Stratum
	Counts   Counts
	Spread   Spread
	// Loudest is the proxy with the most failures, Busiest that with the most requests. A replica of
	// before does not tell of them.
	Loudest, Busiest Loud
	Coverage         Coverage
}

// Loud is a proxy that told of a cell, with its requests that are over and those that count against
// the variation. Its ID is a hash of its pod's UID, so that a judge can leave out one proxy.
type Loud struct{ ID, N, X uint64 }

// idOf a proxy; it is not 0, which is nobody's.
func idOf(podUID string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(podUID))
	return max(1, hash.Sum64())
}

// hear a proxy. Of equal ones the lowest ID is kept, so that their order says nothing.
func (c *Cell) hear(podUID string, n, x uint64) {
	if n == 0 {
		return
	}
	one := Loud{idOf(podUID), n, x}
	if x > 0 && (x > c.Loudest.X || x == c.Loudest.X && one.ID < c.Loudest.ID) {
		c.Loudest = one
	}
	if n > c.Busiest.N || n == c.Busiest.N && one.ID < c.Busiest.ID {
		c.Busiest = one
	}
}

// Stratum is what proxies had acknowledged of a route during all of the time that they tell of. The
// zero Stratum says that this changed meanwhile, or is not known.
type Stratum struct {
	Sequence uint64
	// Shared says that the sequence is that of a route about many services.
	Shared bool
}

// Spread are sums over the proxies that told of a cell: of n requests of a proxy that are over x
// count against the variation, see [Counts.Outcomes].
type Spread struct {
	Proxies    uint64
	N, X       uint64
	NN, XN, XX float64
}

func (s *Spread) add(n, x uint64) {
	s.Proxies++
	s.N, s.X = s.N+n, s.X+x
	s.NN += float64(n) * float64(n)
	s.XN += float64(x) * float64(n)
	s.XX += float64(x) * float64(x)
}

// Coverage counts the proxies of a slot when the cell closed; it is the same in all strata.
type Coverage struct {
	// Expected have told of the slot before, Telling told of it in the cell, Silent were not heard
	// for three intervals, and of Gapped a gap before the cell became known in it. Refused were
	// not counted, since there was no room.
	Expected, Telling, Silent, Gapped, Refused uint64
}

// whole says that each proxy has told, and nothing is missing.
func (c Coverage) whole() bool {
	return c.Telling == c.Expected && c.Silent == 0 && c.Gapped == 0 && c.Refused == 0
}

// stratum of a slot in the cell that has not ended.
type stratum struct {
	Stratum
	from, to time.Time
	counts   Counts
}

// share is what one proxy told of a slot in the cell that has not ended.
type share struct {
	Stratum
	n, x uint64
}

// tell notes what a proxy told of a slot, and of which time.
func (r *reporter) tell(in Stratum, counts *Counts, from, to time.Time) {
	before := r.stratum
	r.stratum, r.told = in, true
	if before != in || !r.stratified {
		in = Stratum{}
	}
	r.stratified = true
	if *counts == (Counts{}) {
		return
	}
	s := r.of.in(in)
	if s.from.IsZero() || from.Before(s.from) {
		s.from = from
	}
	if to.After(s.to) {
		s.to = to
	}
	s.counts.Add(counts)
	n, x := counts.Outcomes()
	for i := range r.shares {
		if r.shares[i].Stratum == in {
			r.shares[i].n, r.shares[i].x = r.shares[i].n+n, r.shares[i].x+x
			return
		}
	}
	r.shares = append(r.shares, share{in, n, x})
}

// in is the stratum of the cell that has not ended.
func (s *slot) in(of Stratum) *stratum {
	for i := range s.open {
		if s.open[i].Stratum == of {
			return &s.open[i]
		}
	}
	s.open = append(s.open, stratum{Stratum: of})
	return &s.open[len(s.open)-1]
}

// turn closes the cell before, if it has ended by now.
func (a *Accumulator) turn(now time.Time) {
	at := cellOf(now)
	if at <= a.cell {
		return
	}
	ended := a.cell
	a.cell = at
	if ended == 0 {
		return
	}
	for _, s := range a.slots {
		a.close(s, ended)
	}
	a.log.forget(now.Add(-a.config.Retention))
}

// close the cell of a slot, and begin the next one.
func (a *Accumulator) close(s *slot, ended cell) {
	covers := a.coverage(s, ended)
	if len(s.open) == 0 && !covers.whole() {
		s.in(Stratum{}) // that something is missing is told as well
	}
	for i := range s.open {
		o := &s.open[i]
		c := Cell{Slot: s.Slot, Start: ended.start(), From: o.from, To: o.to, Stratum: o.Stratum, Counts: o.counts, Coverage: covers}
		for _, r := range s.reporters {
			for _, share := range r.shares {
				if share.Stratum == o.Stratum {
					c.Spread.add(share.n, share.x)
					c.hear(r.proxy.UID, share.n, share.x)
				}
			}
		}
		a.number++
		a.log.Add(Position{a.epoch, a.number}, s.Slot, ended.start(), c.Encode())
	}
	s.open, s.refused = nil, 0
	for _, r := range s.reporters {
		r.told, r.shares = false, r.shares[:0]
	}
}

func (a *Accumulator) coverage(s *slot, ended cell) Coverage {
	c := Coverage{Refused: s.refused}
	end := (ended + 1).start()
	for _, r := range s.reporters {
		if r.told {
			c.Telling++
		}
		if r.proxy.ended && !r.told {
			continue
		}
		c.Expected++
		if r.proxy.reported.Before(end.Add(-3 * a.config.Interval)) {
			c.Silent++
		}
		if r.proxy.gapped == ended {
			c.Gapped++
		}
	}
	return c
}

// Cells are those that have closed by now, see [Log.After].
func (a *Accumulator) Cells(after Position, limit int, now time.Time) (cells []Told, lost bool) {
	a.turn(now)
	return a.log.After(after, limit)
}
