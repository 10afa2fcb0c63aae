// SPDX-License-Identifier: Apache-2.0

package ads

import "time"

// suspicion is how long it is waited for an answer after a cluster was taken away.
const suspicion = time.Second

// withheld is what is said of a cluster that was taken away.
const withheld = "as long as it was there the proxy acknowledged no other cluster, so it was taken away"

// suspect takes one cluster away. Envoy 1.40 acknowledges no cluster any more while one
// waits that cannot be built (it says nothing about which), and does so at once
// when that one goes. Clusters that some Envoy has acknowledged can be built; those
// that a route names may carry traffic, and are left. It either has its endpoints, or
// has never asked for them; one that waits for them is not it.
func (s *Stream) suspect(now time.Time) {
	if !s.suspectedAt.IsZero() && now.Before(s.suspectedAt.Add(suspicion)) {
		return
	}
	own := &s.types[Cluster]
	for _, name := range own.names(func(string) bool { return true }) {
		h, _ := own.peek(name)
		ends, asked := s.types[Endpoints].peek(name)
		c := h.sent
		if c == nil && h.known { // by an earlier stream
			c = s.view.Get(Cluster, name)
		}
		if c == nil || h.removing || h.acquitted || s.proofs.Proven(c) || asked && (!ends.known || ends.again) || s.claimOf(name) != unclaimed {
			continue
		}
		if asked && now.Before(ends.acknowledged.Add(suspicion)) { // the answer may be right behind
			s.suspectedAt = now
			return
		}
		suspected := own.find(name)
		suspected.park(c, withheld, now)
		suspected.sent, suspected.expelled = nil, true
		own.unsettle(name)
		s.suspects, s.suspectedAt = append(s.suspects, name), now
		return
	}
	s.acquit(len(s.suspects)) // it is one that may carry traffic
}

// acquit lets the first of the suspects come back.
func (s *Stream) acquit(n int) {
	own := &s.types[Cluster]
	for _, name := range s.suspects[:n] {
		if h := own.find(name); h != nil {
			h.parked, h.alone, h.acquitted = nil, true, true
			h.removing, h.known = false, false // whether or not that is ever acknowledged
			own.unsettle(name)
		}
	}
	s.suspects, s.suspectedAt = nil, time.Time{}
}

// convict finds that the last suspect was it, since clusters are answered again,
// and lets the others come back.
func (s *Stream) convict() []Effect {
	if len(s.suspects) == 0 {
		s.suspectedAt = time.Time{}
		return nil
	}
	last := len(s.suspects) - 1
	culprit := s.types[Cluster].find(s.suspects[last])
	s.acquit(last)
	if culprit == nil || culprit.parked == nil {
		return nil
	}
	return []Effect{Withheld{culprit.parked.last().resource}}
}
