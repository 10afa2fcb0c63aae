// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"cmp"
	"slices"
	"time"
)

// Config bounds what is kept. A zero field is the default.
type Config struct {
	// Interval is how often proxies send a flush: 10 s.
	Interval time.Duration
	// Retention is how long cells are kept, and proxies that are gone: 30 minutes.
	Retention time.Duration
	// Proxies, Slots, and Slots that one proxy and one gateway may tell of: 20,000, 2,048, 64
	// and 2,048. What comes on top is not counted, and is a gap of that slot.
	Proxies, Slots, SlotsOfProxy, SlotsOfGateway int
	// SlotBytes bounds the sums of a slot: 128 KiB. The oldest are let go first.
	SlotBytes int
	// Epoch is when counting began.
	Epoch time.Time
}

func (c Config) withDefaults() Config {
	c.Interval = cmp.Or(c.Interval, 10*time.Second)
	c.Retention = cmp.Or(c.Retention, 30*time.Minute)
	c.Proxies = cmp.Or(c.Proxies, 20_000)
	c.Slots = cmp.Or(c.Slots, 2_048)
	c.SlotsOfProxy = cmp.Or(c.SlotsOfProxy, 64)
	c.SlotsOfGateway = cmp.Or(c.SlotsOfGateway, 2_048)
	c.SlotBytes = cmp.Or(c.SlotBytes, 128<<10)
	return c
}

// SlotsOf a proxy are how many it may tell of.
func (c Config) SlotsOf(p Proxy) int {
	c = c.withDefaults()
	if p.Gateway {
		return c.SlotsOfGateway
	}
	return c.SlotsOfProxy
}

// Proxy is one that counts.
type Proxy struct {
	UID, Namespace, Name string
	// Gateway says that it serves all namespaces.
	Gateway bool
}

// Flush is what a proxy sends at once.
type Flush struct {
	// At is the time of the proxy's clock.
	At time.Time
	// Began is when the proxy's process did, by that clock and to the second; zero if the
	// flush does not tell.
	Began time.Time
	Slots []Reported
}

// Reported is what a proxy tells of a slot: what happened since the last flush, and how
// many requests are in flight.
type Reported struct {
	Slot   Slot
	Counts Counts
	// Stratum is what the proxy has acknowledged of the slot's route.
	Stratum Stratum
	// FailedOver are those of Counts that the stable variation served: statuses and latencies.
	FailedOver Counts
	Active     uint64
}

// Accumulator keeps what proxies told; [New] makes one.
type Accumulator struct {
	config  Config
	proxies map[string]*proxy // by uid
	slots   map[Slot]*slot
	// services are the slots by service.
	services map[service][]*slot
	// cell is the one that has not ended, and log has those that have, the last of which has number.
	cell    cell
	log     Log
	epoch   int64
	number  uint64
	refused refusals
	swept   time.Time
	look    uint32 // how many variations were read
}

// New has been told nothing.
func New(config Config) *Accumulator {
	return &Accumulator{
		config: config.withDefaults(), proxies: map[string]*proxy{}, slots: map[Slot]*slot{}, services: map[service][]*slot{},
		epoch: EpochOf(config.Epoch),
	}
}

// service has slots.
type service struct{ namespace, name string }

func serviceOf(s Slot) service { return service{s.Namespace, s.Service} }

// slot is the sum over all proxies.
type slot struct {
	Slot
	first time.Time
	total Counts
	// now is what is told in the cell that has not ended, past the others.
	cell      cell
	now       Counts
	past      records
	reporters []*reporter
	// open are the strata of the cell that has not ended, in which so many flushes were refused.
	open    []stratum
	refused uint64
}

// add what was told.
func (s *slot) add(at cell, counts *Counts, oldest cell, most int) {
	if at != s.cell {
		if s.now != (Counts{}) {
			s.past.add(s.cell, &s.now, oldest, most)
		}
		s.cell, s.now = at, Counts{}
	}
	s.now.Add(counts)
	s.total.Add(counts)
}

// Open tells that a proxy has a stream; false when there are too many proxies.
func (a *Accumulator) Open(who Proxy, now time.Time) bool {
	a.sweep(now)
	p := a.proxies[who.UID]
	if p == nil {
		if len(a.proxies) >= a.config.Proxies {
			return false
		}
		p = &proxy{Proxy: who, heard: now}
		a.proxies[who.UID] = p
	}
	p.streams++
	p.began = true
	return true
}

// Close tells that a stream has ended.
func (a *Accumulator) Close(uid string, now time.Time) {
	if p := a.proxies[uid]; p != nil {
		p.streams--
		p.heard = now
	}
}

// End tells that a pod is gone: nothing of it is in flight, and what it has told stays
// until it is too old.
func (a *Accumulator) End(uid string, now time.Time) {
	if p := a.proxies[uid]; p != nil {
		p.ended, p.heard = true, now
		for _, r := range p.reports {
			r.cancels.active = 0
		}
	}
}

// Report takes a flush of a proxy that has a stream, and says of how many slots it was
// not counted, because there are too many. It writes what is derived into the flush, and
// keeps nothing of it.
func (a *Accumulator) Report(uid string, f Flush, now time.Time) (refused int) {
	a.sweep(now)
	a.turn(now)
	p := a.proxies[uid]
	if p == nil || p.ended {
		return len(f.Slots)
	}
	since := p.reported
	came, from := p.arrive(&f, now, a.config.Interval)
	for i := range f.Slots {
		told := &f.Slots[i]
		r, known := a.reporter(p, told.Slot, now)
		switch {
		case r == nil:
			refused++
			a.refused.note(p.Proxy, told.Slot, since, now)
			if s := a.slots[told.Slot]; s != nil {
				s.refused++
			}
			continue
		case came == unknown:
			r.begin(told.Active)
		case came == first, !known:
			r.begin(0)
		}
		r.flush = p.flushes
		if came != unknown {
			r.cancels.flush(&told.Counts, told.Active)
		}
		told.Counts.exclude(&told.FailedOver, &r.failover)
		told.Counts.derive(&r.torn)
		r.tell(told.Stratum, &told.Counts, from, now)
		a.keep(r, &told.Counts, now)
	}
	p.drop()
	return refused
}

// keep what a flush says of a slot.
func (a *Accumulator) keep(r *reporter, counts *Counts, now time.Time) {
	if *counts == (Counts{}) {
		return
	}
	at, oldest := cellOf(now), cellOf(now.Add(-a.config.Retention))
	r.of.add(at, counts, oldest, a.config.SlotBytes)
}

// reporter of a slot at a proxy, and whether it was there; nil when there is room for
// none.
func (a *Accumulator) reporter(p *proxy, of Slot, now time.Time) (r *reporter, known bool) {
	place, known := p.find(of)
	if known {
		return p.reports[place], true
	}
	s := a.slots[of]
	if len(p.reports) >= a.config.SlotsOf(p.Proxy) || s == nil && len(a.slots) >= a.config.Slots {
		return nil, false
	}
	if s == nil {
		s = &slot{Slot: of, first: now}
		a.slots[of] = s
		a.services[serviceOf(of)] = append(a.services[serviceOf(of)], s)
	}
	r = &reporter{proxy: p, of: s, place: len(s.reporters)}
	s.reporters = append(s.reporters, r)
	p.reports = slices.Insert(p.reports, place, r)
	return r, false
}

// sweepEvery so often is looked for what is too old.
const sweepEvery = time.Minute

// sweep lets go of proxies that are gone, and of slots that nobody tells of.
func (a *Accumulator) sweep(now time.Time) {
	if now.Sub(a.swept) < sweepEvery {
		return
	}
	a.swept = now
	old := now.Add(-a.config.Retention)
	for uid, p := range a.proxies {
		if p.streams > 0 && !p.ended || !p.heard.Before(old) {
			p.forget(uint32(a.config.Retention / a.config.Interval)) //nolint:gosec // far below
			continue
		}
		for _, r := range p.reports {
			r.leave()
		}
		delete(a.proxies, uid)
	}
	a.refused.forget(old)
	for of, s := range a.slots {
		if len(s.reporters) == 0 && s.cell.start().Before(old) {
			delete(a.slots, of)
			key := serviceOf(of)
			if a.services[key] = slices.DeleteFunc(a.services[key], func(o *slot) bool { return o == s }); len(a.services[key]) == 0 {
				delete(a.services, key)
			}
		}
	}
}
