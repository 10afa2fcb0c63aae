// SPDX-License-Identifier: Apache-2.0

package signals

import "time"

// refusals are the slots for which there was no room, with the proxies that told of them.
type refusals struct {
	of    map[owner]map[refusal]ProxyGap
	count int
	// others are of slots that are not even known by name.
	others Gap
}

// owner of slots is a service.
type owner struct{ namespace, service string }

type refusal struct {
	slot Slot
	uid  string
}

// maxRefusals are kept by name. What comes on top is a gap of every service.
const maxRefusals = 8_192

// note that what a proxy counted of a slot since a time is lost.
func (r *refusals) note(p Proxy, of Slot, since, now time.Time) {
	if since.IsZero() {
		since = now
	}
	service, k := owner{of.Namespace, of.Service}, refusal{of, p.UID}
	gap, known := r.of[service][k]
	switch {
	case known:
		gap.To = now
	case r.count >= maxRefusals:
		if r.others.To.IsZero() {
			r.others.From = since
		}
		r.others.To = now
		return
	default:
		r.count++
		gap = ProxyGap{p, Gap{From: since, To: now}}
	}
	if r.of == nil {
		r.of = map[owner]map[refusal]ProxyGap{}
	}
	if r.of[service] == nil {
		r.of[service] = map[refusal]ProxyGap{}
	}
	r.of[service][k] = gap
}

// forget what was over before a time.
func (r *refusals) forget(old time.Time) {
	for service, all := range r.of {
		for k, gap := range all {
			if gap.To.Before(old) {
				delete(all, k)
				r.count--
			}
		}
		if len(all) == 0 {
			delete(r.of, service)
		}
	}
	if r.others.To.Before(old) {
		r.others = Gap{}
	}
}

// tell a service what of it was not counted since its From. A variation that was never counted
// is one of the service all the same.
func (r *refusals) tell(namespace, service string, s *Service, gapped map[string][]ProxyGap) {
	uncounted := map[string]map[string]bool{} // proxies by variation
	for k, gap := range r.of[owner{namespace, service}] {
		if !gap.To.After(s.From) {
			continue
		}
		gapped[k.uid] = append(gapped[k.uid], gap)
		if uncounted[k.slot.Variation] == nil {
			uncounted[k.slot.Variation] = map[string]bool{}
		}
		uncounted[k.slot.Variation][k.uid] = true
	}
	for i := range s.Variations {
		v := &s.Variations[i]
		v.Uncounted = len(uncounted[v.Name])
		delete(uncounted, v.Name)
	}
	for name, proxies := range uncounted {
		s.Variations = append(s.Variations, Variation{Name: name, Uncounted: len(proxies)})
	}
	if r.others.To.After(s.From) {
		gapped[""] = append(gapped[""], ProxyGap{Gap: r.others})
		for i := range s.Variations {
			s.Variations[i].Uncounted++
		}
	}
}
