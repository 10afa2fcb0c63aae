// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"cmp"
	"slices"
	"time"
)

// Service is what was counted of one, over all its ports.
type Service struct {
	// From and To are what was counted: whole cells, and the one that has not ended.
	From, To time.Time
	// Variations that somebody has told of, by name.
	Variations []Variation
	// Gaps of the proxies that tell of it, in that time, oldest first. There may be a
	// hundred at most; Gapped is how many proxies have some.
	Gaps   []ProxyGap
	Gapped int
}

// Variation is what was counted of one.
type Variation struct {
	Name string
	// Counts in that time, and Total since First, which is when this was told of first.
	Counts, Total Counts
	First         time.Time
	// Share of the requests to all variations that are over; 0 when there are none.
	Share float64
	// InFlight are requests that nobody has answered and those whose answer goes on.
	InFlight uint64
	// Proxies tell of it. Silent are those of them that were not heard of for three
	// intervals, and what they had in flight is in InFlight as it was. Oldest is the
	// oldest of their last reports.
	Proxies, Silent int
	Oldest          time.Time
	// Uncounted are proxies that have told of it, and for whose counts there was no room.
	Uncounted int
}

// ProxyGap is a gap of a proxy.
type ProxyGap struct {
	Proxy Proxy
	Gap
}

// maxTold is how many gaps are told at once.
const maxTold = 100

// Service says what was counted of a service since a time. What was counted before it
// is not in it: a cell that began earlier is left out. If cells are no longer kept, From
// says since when they are.
func (a *Accumulator) Service(namespace, name string, since, now time.Time) Service {
	out := Service{From: a.kept(since, now), To: now}
	by := map[string][]*slot{}
	for _, s := range a.services[serviceOf(Slot{Namespace: namespace, Service: name})] {
		by[s.Variation] = append(by[s.Variation], s)
	}
	gapped := map[string][]ProxyGap{} // by uid
	for variation, slots := range by {
		v := Variation{Name: variation, First: slots[0].first}
		a.look++
		for _, s := range slots {
			v.add(s, cellOf(out.From))
			for _, r := range s.reporters {
				v.InFlight += r.cancels.active
				if p := r.proxy; p.look != a.look && !p.ended {
					p.look = a.look // a proxy may tell of it on several ports
					v.heard(p, now.Add(-3*a.config.Interval))
					if n := p.gapsSince(out.From); n > 0 && gapped[p.UID] == nil {
						for _, g := range p.gaps[len(p.gaps)-n:] {
							gapped[p.UID] = append(gapped[p.UID], ProxyGap{p.Proxy, g})
						}
					}
				}
			}
		}
		out.Variations = append(out.Variations, v)
	}
	a.refused.tell(namespace, name, &out, gapped)
	slices.SortFunc(out.Variations, func(a, b Variation) int { return cmp.Compare(a.Name, b.Name) })
	out.divide()
	out.tell(gapped)
	return out
}

// kept is the start of the first whole cell since a time that is still there.
func (a *Accumulator) kept(since, now time.Time) time.Time {
	since = latest(since, now.Add(-a.config.Retention))
	at := cellOf(since)
	if at.start().Before(since) {
		at++
	}
	return at.start()
}

// add what was counted on a port.
func (v *Variation) add(s *slot, from cell) {
	if s.first.Before(v.First) {
		v.First = s.first
	}
	v.Total.Add(&s.total)
	if s.cell >= from {
		v.Counts.Add(&s.now)
	}
	s.past.back(from, func(_ cell, c *Counts) bool {
		v.Counts.Add(c)
		return true
	})
}

// heard of a proxy that tells of it.
func (v *Variation) heard(p *proxy, silent time.Time) {
	v.Proxies++
	if p.reported.Before(silent) {
		v.Silent++
	}
	if v.Oldest.IsZero() || p.reported.Before(v.Oldest) {
		v.Oldest = p.reported
	}
}

// divide says what the share of each is.
func (s *Service) divide() {
	var all uint64
	for i := range s.Variations {
		over, _ := s.Variations[i].Counts.Outcomes()
		all += over
	}
	for i := range s.Variations {
		if over, _ := s.Variations[i].Counts.Outcomes(); all > 0 {
			s.Variations[i].Share = float64(over) / float64(all)
		}
	}
}

// tell of the gaps of proxies.
func (s *Service) tell(gapped map[string][]ProxyGap) {
	s.Gapped = len(gapped)
	for _, gaps := range gapped {
		s.Gaps = append(s.Gaps, gaps...)
	}
	slices.SortFunc(s.Gaps, func(a, b ProxyGap) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Proxy.UID, b.Proxy.UID))
	})
	s.Gaps = s.Gaps[:min(len(s.Gaps), maxTold)]
}

// gapsSince counts those that go on after a time.
func (p *proxy) gapsSince(t time.Time) int {
	n := 0
	for n < len(p.gaps) && p.gaps[len(p.gaps)-1-n].To.After(t) {
		n++
	}
	return n
}
