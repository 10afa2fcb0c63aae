// SPDX-License-Identifier: Apache-2.0

package signals

import (
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
	// interval is the shortest time between two flushes of one stream, 0 when there
	// were none: a proxy is late at times, and never early.
	interval time.Duration
	flushes  uint32 // how many there were
	look     uint32 // the last one that saw it, see [Accumulator.Service]
	gaps     []Gap
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
	past     records
}

// leave the slot.
func (r *reporter) leave() {
	others := r.of.reporters
	end := others[len(others)-1]
	others[r.place], end.place = end, r.place
	others[len(others)-1] = nil
	r.of.reporters = others[:len(others)-1]
}

// arrive notes a flush. It is true when nothing is known of the time before it.
func (p *proxy) arrive(at, now time.Time, usual time.Duration) (fresh bool) {
	interval := usual
	if p.interval > 0 {
		interval = p.interval
	}
	passed := at.Sub(p.flushed)
	switch {
	case p.flushed.IsZero():
		fresh = true
	case !p.began: // on one stream nothing is lost
		if passed > 0 && (p.interval == 0 || passed < p.interval) {
			p.interval = passed
		}
	case passed <= 0, passed > interval+interval/2:
		fresh = true
		p.miss(Gap{From: p.reported, To: latest(p.reported, now.Add(-interval))})
	}
	p.began = false
	p.flushes++
	p.heard, p.reported, p.flushed = now, now, at
	return fresh
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
