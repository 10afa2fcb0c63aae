// SPDX-License-Identifier: Apache-2.0

package ads

import "slices"

// ready says that the proxy has every cluster of a route, with endpoints. That it
// has confirmed a cluster says nothing: it does so only when all of them are warm.
func (s *Stream) ready(route *Resource) bool {
	for _, name := range route.Clusters {
		cluster := s.view.Get(Cluster, name)
		if cluster == nil {
			return false
		}
		own := s.types[Cluster].held[name]
		if own == nil || own.removing || !own.known && own.sent == nil {
			return false
		}
		if cluster.Inline {
			continue
		}
		if !s.populated(name) {
			return false
		}
	}
	return true
}

// populated says that the proxy has the endpoints of a cluster, and not what stands
// for them since they were not there.
func (s *Stream) populated(cluster string) bool {
	k := Key{Endpoints, cluster}
	h, want := s.types[Endpoints].held[cluster], s.view.Get(Endpoints, cluster)
	if h == nil || !h.known || h.told == nil { // or it knows that there are none
		return false
	}
	if want == nil || want.Version == h.version() {
		return true
	}
	stand := s.missing(k)
	return stand == nil || h.version() != stand.Version
}

// routed says that a route which the proxy has, or is about to have, may name a
// cluster.
func (s *Stream) routed(cluster string) bool {
	if !s.types[Route].open { // it has not said yet which routes it has
		return true
	}
	for _, h := range s.types[Route].held {
		switch {
		case h.known && h.has == nil && h.version() != gone: // who knows what it says
			return true
		case h.has != nil && slices.Contains(h.has.Clusters, cluster), h.sent != nil && slices.Contains(h.sent.Clusters, cluster):
			return true
		}
	}
	return false
}
