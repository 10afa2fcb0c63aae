// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"cmp"
	"slices"
	"time"
)

// proxy is what is known of one.
type proxy struct {
	Proxy
	streams int
	// began says that the next flush is the first of a stream.
	began, ended bool
	// heard is when something was heard of it last, reported when that was a flush, and
	// flushed when that was by its own clock. Both are zero before the first.
	heard, reported, flushed time.Time
	// process is when its process began, zero if it does not tell.
	process time.Time
	// interval is the shortest time between two flushes of one stream, 0 when there
	// were none: a proxy is late at times, and never early.
	interval time.Duration
	flushes  uint32 // how many there were
	look     uint32 // the last one that saw it, see [Accumulator.Service]
	gaps     []Gap
	gapped   cell        // in which the last gap became known
	reports  []*reporter // by slot
}

// Gap is a time of which it is not known what a proxy counted.
type Gap struct{ From, To time.Time }

// maxGaps are kept of a proxy; the two oldest become one when there are more.
const maxGaps = 8

// reporter is a proxy that tells of a slot.
type reporter struct {
	proxy   *proxy
	of      *slot
	place   int    // among the slot's reporters
	flush   uint32 // the last one that told of it
	cancels cancels
	torn    torn
	// failover are the requests that are still to be excluded.
	failover failover
	// stratum is what the flush before told, once there was one; told says that there was one in
	// the cell that has not ended, in which it told these shares.
	stratum          Stratum
	stratified, told bool
	shares           []share
}

// leave the slot.
func (r *reporter) leave() {
	others := r.of.reporters
	end := others[len(others)-1]
	others[r.place], end.place = end, r.place
	others[len(others)-1] = nil
	r.of.reporters = others[:len(others)-1]
}

// arrival says what is known of the time before a flush.
type arrival int

const (
	// follows: all since the flush before.
	follows arrival = iota
	// first: all since the process of the proxy began.
	first
	// unknown: nothing.
	unknown
)

// sameProcess is how far apart one process may seem to have begun: Envoy counts in seconds.
const sameProcess = 2 * time.Second

// arrive notes a flush, and returns what is known of the time before it, and since when it tells.
func (p *proxy) arrive(f *Flush, now time.Time, usual time.Duration) (came arrival, from time.Time) {
	passed := f.At.Sub(p.flushed)
	interval := cmp.Or(p.interval, usual)
	covered := interval // is the time that the flush tells of
	restarted := !f.Began.IsZero() && !p.process.IsZero() && f.Began.Sub(p.process).Abs() >= sameProcess
	switch {
	case p.flushed.IsZero(), restarted:
		came = unknown
		if up := f.At.Sub(f.Began); !f.Began.IsZero() && up <= late(interval) {
			came, covered = first, up
		}
	case !p.began: // on one stream nothing is lost
		if passed > 0 && (p.interval == 0 || passed < p.interval) {
			p.interval = passed
		}
	case passed <= 0, passed > late(interval):
		came = unknown
	}
	from = p.reported
	if came != follows {
		from = latest(p.reported, now.Add(-covered))
	}
	if came != follows && !p.flushed.IsZero() {
		p.miss(Gap{From: p.reported, To: from})
		p.gapped = cellOf(now)
	}
	if !f.Began.IsZero() {
		p.process = f.Began
	}
	p.began = false
	p.flushes++
	p.heard, p.reported, p.flushed = now, now, f.At
	return came, from
}

// late is how much time may pass between two flushes of which none was lost.
func late(interval time.Duration) time.Duration { return interval + interval/2 }

// begin has the slot know nothing of the flushes before, with so many requests in flight.
func (r *reporter) begin(active uint64) {
	r.cancels.begin(active)
	r.torn, r.failover, r.stratified = torn{}, failover{}, false
}

// find the place of a slot among those that the proxy tells of, and whether it is there. A
// gateway may tell of thousands.
func (p *proxy) find(of Slot) (int, bool) {
	return slices.BinarySearchFunc(p.reports, of, func(r *reporter, of Slot) int { return r.of.compare(of) })
}

// forget slots of which so many flushes have told nothing, so that there is room for others.
func (p *proxy) forget(flushes uint32) {
	p.reports = slices.DeleteFunc(p.reports, func(r *reporter) bool {
		old := p.flushes-r.flush > flushes
		if old {
			r.leave()
		}
		return old
	})
}

func (p *proxy) miss(g Gap) {
	p.gaps = append(p.gaps, g)
	if len(p.gaps) > maxGaps {
		p.gaps[1].From = p.gaps[0].From
		p.gaps = slices.Delete(p.gaps, 0, 1)
	}
}

// drop what the last flush does not tell of: the proxy has no such cluster any more, and
// if it gets one again that begins at zero.
func (p *proxy) drop() {
	for _, r := range p.reports {
		if r.flush != p.flushes {
			r.cancels.begin(0)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
