// SPDX-License-Identifier: Apache-2.0

package ads

import "slices"

// ready says that the proxy has every cluster of a route, with endpoints. That it
// has acknowledged a cluster says nothing: it does so only when all of them are warm.
func (s *Stream) ready(route *Resource) bool {
	for _, name := range route.Clusters {
		cluster := s.view.Get(Cluster, name)
		if cluster == nil {
			return false
		}
		own, there := s.types[Cluster].peek(name)
		if !there || own.removing || !own.known && own.sent == nil {
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
	want := s.view.Get(Endpoints, cluster)
	h, _ := s.types[Endpoints].peek(cluster)
	if !h.known || h.told == nil { // or it knows that there are none
		return false
	}
	if want == nil || want.Version == h.version() {
		return true
	}
	stand := s.missing(k)
	return stand == nil || h.version() != stand.Version
}

// claim of the proxy's routes to a cluster.
type claim int

const (
	unclaimed claim = iota
	// claimed: a route that the proxy has, or is about to have, may name the cluster.
	claimed
	// kept: a route names it that is gone, and that the proxy keeps.
	kept
)

func (s *Stream) claimOf(cluster string) claim {
	if !s.types[Route].open { // it has not said yet which routes it has
		return claimed
	}
	c := unclaimed
	for name, h := range s.types[Route].all {
		if !s.names(name, h, cluster) {
			continue
		}
		if h.named && s.view.Get(Route, name) == nil {
			return kept
		}
		c = claimed
	}
	return c
}

// names says that a route which the proxy has, or is about to have, may name a cluster.
func (s *Stream) names(route string, h *held, cluster string) bool {
	if h.has == nil && s.keeps(Key{Route, route}, h) { // it is not known what it says
		return true
	}
	return h.has != nil && slices.Contains(h.has.Clusters, cluster) || h.sent != nil && slices.Contains(h.sent.Clusters, cluster)
}

// keeps says that a proxy keeps a route which is gone, for as long as it wants the route: the
// listener is drained meanwhile, and connections that are open have requests. Without the
// route they would be answered with 503.
func (s *Stream) keeps(k Key, h *held) bool {
	if k.Type != Route || !h.known || h.version() == gone {
		return false
	}
	stand := s.missing(k)
	return stand == nil || h.version() != stand.Version
}

// forgot says that the proxy had something, and asks for it anew.
func (h *held) forgot() bool {
	return !h.known && h.has != nil && h.sent == nil && !h.parks(h.has)
}
