// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// sorted yields the names that are unsettled now. While a proxy starts, the same names wait for one answer
// after the other, so their order is kept.
func (own *subscriptions) sorted(yield func(string) bool) {
	if own.order == nil {
		own.order = slices.AppendSeq(make([]string, 0, len(own.unsettled)), maps.Keys(own.unsettled))
		slices.Sort(own.order)
	}
	for _, name := range own.order {
		if _, is := own.unsettled[name]; is && !yield(name) {
			return
		}
	}
}

// verdict is what one name needs now.
type verdict int

const (
	nothing verdict = iota // and nothing later, until something happens to it
	waits                  // it is looked at again whenever anything happens
	sends
	removes
)

// settle sends what may be sent now, type by type in the order that Envoy needs. As long
// as there is no view, nothing is: that a name is not known yet does not say that it is
// not there.
func (s *Stream) settle(now time.Time, effects []Effect) []Effect {
	if s.view == nil {
		return effects
	}
	for t := range Type(types) {
		if s.awaits(t) {
			effects = append(effects, s.send(&response{kind: t, at: now}))
		}
		effects = s.settleType(t, now, effects)
	}
	// A cluster goes when the routes that named it are gone, which have just been
	// looked at; those are acknowledged by the next event at the earliest.
	if len(s.had) > 0 {
		effects = append(effects, Acked{s.had})
		s.had = nil
	}
	for _, a := range s.ahead {
		effects = append(effects, a)
	}
	s.ahead = nil
	for t := range s.types {
		s.types[t].gather(s.view)
	}
	return effects
}

// awaits says that a proxy has to be told that there is nothing of a type.
func (s *Stream) awaits(t Type) bool {
	return s.types[t].awaited && len(s.view.Names(t)) == 0
}

func (s *Stream) settleType(t Type, now time.Time, effects []Effect) []Effect {
	own := &s.types[t]
	own.full = false
	if len(own.unsettled) == 0 || !own.open {
		return effects
	}
	batch := &response{kind: t, at: now}
	for name := range own.sorted {
		h := own.find(name)
		if h == nil {
			own.settle(name)
			continue
		}
		resource, v, late := s.needs(Key{t, name}, h, now)
		switch v {
		case nothing:
			h.since = 0
			own.settle(name)
			continue
		case waits:
			continue
		case sends, removes:
		}
		size := 0
		if resource != nil {
			size = len(resource.Body)
		}
		if s.full(t, batch.bytes+size) {
			own.full = true // the rest goes when something was answered
			break
		}
		if late {
			effects = append(effects, Late{resource})
		}
		if v == sends && s.alone(h, resource) {
			effects = append(effects, s.send(&response{kind: t, at: now, bytes: size, resources: []*Resource{resource}}))
			continue
		}
		batch.add(name, resource)
		if len(batch.resources)+len(batch.removed) >= s.config.Batch {
			effects = append(effects, s.send(batch))
			batch = &response{kind: t, at: now}
		}
	}
	if len(batch.resources)+len(batch.removed) > 0 {
		effects = append(effects, s.send(batch))
	}
	return effects
}

func (r *response) add(name string, resource *Resource) {
	if resource == nil {
		r.removed = append(r.removed, name)
		return
	}
	r.resources = append(r.resources, resource)
	r.bytes += len(resource.Body)
}

// full says that so many more bytes of a type, or one more response, are too many as long as
// nothing is answered. Each type counts alone, since clusters are answered when endpoints have
// come; and what is overdue does not count, since it may never be answered.
func (s *Stream) full(t Type, more int) bool {
	total, waiting := more, 0
	for _, r := range s.flight {
		if r.kind == t && !r.told {
			total += r.bytes
			waiting++
		}
	}
	return waiting > 0 && total > s.config.Window || waiting >= s.config.Unanswered
}

// alone says that a resource shares its response with no other.
func (s *Stream) alone(h *held, r *Resource) bool {
	return h.alone || r.Type.fragile() && !s.proofs.Proven(r) && !s.stands(r)
}

// send notes a response as being on the way.
func (s *Stream) send(r *response) Effect {
	s.nonce++
	r.nonce, r.text = s.nonce, strconv.FormatUint(s.nonce, 10)
	own := &s.types[r.kind]
	own.awaited = false
	for _, resource := range r.resources {
		h := own.find(resource.Name)
		h.sent, h.nonce, h.again, h.since = resource, r.nonce, false, 0
		if r.kind == Cluster {
			s.warm(resource.Name)
		}
	}
	for _, name := range r.removed {
		h := own.find(name)
		h.removing, h.nonce, h.expelled, h.since = true, r.nonce, false, 0
		if r.kind == Cluster {
			s.cool(name)
		}
	}
	s.flight = append(s.flight, r)
	return Send{Type: r.kind, Nonce: r.text, Resources: r.resources, Removed: r.removed}
}

// warm sends the endpoints of a cluster that changes, or comes back, once more if
// they were asked for before: Envoy waits for them, and may not ask again.
func (s *Stream) warm(cluster string) {
	own := &s.types[Endpoints]
	if h := own.find(cluster); h != nil {
		h.again = true
		own.unsettle(cluster)
	}
}

// cool notes that the endpoints of a cluster go with it.
func (s *Stream) cool(cluster string) {
	if h := s.types[Endpoints].find(cluster); h != nil {
		h.known, h.has, h.sent, h.nonce = false, nil, nil, 0 // what is on the way is for the former one
	}
}

// needs says what a name needs now, and whether that is late.
func (s *Stream) needs(k Key, h *held, now time.Time) (r *Resource, v verdict, late bool) {
	want := s.view.Get(k.Type, k.Name)
	if s.holds(h, want) {
		return nil, waits, false
	}
	if want == nil && h.named {
		if s.keeps(k, h) {
			s.tellKept(k, h)
			return nil, nothing, false
		}
		if k.Type == Route && h.forgot() {
			return h.has, sends, false
		}
		if want, v = s.stand(k, h, now); v != sends {
			return nil, v, false
		}
	}
	return s.differs(k, h, want, now)
}

// tellKept tells of a route that the proxy reported and that is gone: it keeps it, with the
// sequence of a decision.
func (s *Stream) tellKept(k Key, h *held) {
	if v := h.version(); h.origin == reported && v.Sequence > 0 {
		s.ahead = append(s.ahead, Ahead{k.Name, v})
	}
}

// differs says what a name needs that should be at the proxy as it is wanted, or not at all.
func (s *Stream) differs(k Key, h *held, want *Resource, now time.Time) (r *Resource, v verdict, late bool) {
	if h.expelled {
		return nil, removes, false
	}
	if h.pending(k.Type, want) {
		return nil, waits, false
	}
	if want == nil {
		return s.goes(k, h, now)
	}
	if h.parks(want) {
		return s.instead(k, h)
	}
	if h.known && !h.again && s.upToDate(h, want) {
		return nil, nothing, false
	}
	if k.Type != Route || s.ready(want) {
		return want, sends, false
	}
	return s.delayed(k, h, want, now)
}

// stand is what stands for something that is not there. That a cluster has no
// endpoints a proxy is not told as long as a route may name it, which is as long as
// the cluster itself stays; if it asks, it gets those that there were.
func (s *Stream) stand(k Key, h *held, now time.Time) (*Resource, verdict) {
	stand := s.missing(k)
	if k.Type != Endpoints || stand == nil || h.known && h.version() == stand.Version || !s.awaitsRoutes(k.Name, h, now) {
		return stand, sends
	}
	former := s.former(k, h)
	if h.known && (!h.again || former == nil) {
		return nil, waits
	}
	return cmp.Or(former, stand), sends
}

// former is what the proxy has, or had before it asked anew, or what another one has
// acknowledged last, or what stands for nothing; nil when nothing is known, or it is
// refused.
func (s *Stream) former(k Key, h *held) *Resource {
	if h.has != nil && !h.parks(h.has) {
		return h.has
	}
	for _, other := range []*Resource{s.proofs.Last(k), s.missing(k)} {
		if other != nil && !h.parks(other) && (!h.known || other.Version == h.version()) {
			return other
		}
	}
	return nil
}

// upToDate says that the proxy has a version, or one of a later decision. What it has
// had before this stream began it has acknowledged to another one, whose answer may have
// been lost with it.
func (s *Stream) upToDate(h *held, want *Resource) bool {
	if h.version() == want.Version {
		if h.origin == reported && !s.stands(want) {
			s.proofs.Prove(want)
			s.had = append(s.had, want)
		}
		h.told, h.has, h.origin = &want.Version, want, given
	}
	if h.origin == reported && want.Type == Route && h.version().Sequence > want.Version.Sequence {
		s.ahead = append(s.ahead, Ahead{want.Name, h.version()})
	}
	return h.current(want)
}

// current says that the proxy has a version, or one of a later decision.
func (h *held) current(want *Resource) bool {
	return h.version() == want.Version || h.version().Sequence > want.Version.Sequence
}

// pending says that the answer to what is on the way has to come first. Answers about
// clusters are withheld as long as one of them waits, so of these a newer version
// is sent over an older one, and the answer to that does not count any more.
func (h *held) pending(t Type, want *Resource) bool {
	switch {
	case h.sent == nil && !h.removing:
	case t != Cluster, want == nil && h.removing, want != nil && h.sent != nil && want.Version == h.sent.Version:
		return true
	case h.sent != nil:
		h.known, h.told, h.has, h.sent, h.origin = true, &h.sent.Version, nil, nil, given
	default:
		h.known, h.removing = false, false
	}
	return false
}

// goes takes away what is no longer there.
func (s *Stream) goes(k Key, h *held, now time.Time) (*Resource, verdict, bool) {
	switch {
	case h.known && h.version() == gone && h.has == nil && h.named:
		return nil, nothing, false // it has been told
	case !h.known && !h.named:
		s.types[k.Type].drop(k.Name) // it never had it
		return nil, nothing, false
	case s.refusesToGo(h, now):
		return nil, waits, false
	case k.Type == Cluster && s.awaitsRoutes(k.Name, h, now):
		return nil, waits, false
	}
	return nil, removes, false
}

// awaitsRoutes says that a cluster, or its endpoints, stays because a route of the proxy may
// name it: for [Config.RemovalDeadline], or until the proxy leaves a route that is gone.
func (s *Stream) awaitsRoutes(cluster string, h *held, now time.Time) bool {
	switch s.claimOf(cluster) {
	case unclaimed:
		return false
	case kept:
		h.since = 0 // no time ends it
		return true
	case claimed:
	}
	if h.since == 0 {
		h.since = at(now)
	}
	return now.Before(h.since.Add(s.config.RemovalDeadline))
}

// delayed holds a route until its clusters have endpoints. A proxy that starts gets
// the last one that works, or one that answers 503: as long as one is missing, it
// opens no listener. In one that runs, a new listener warms, and connections pass as
// before. One that comes back may have a version of which it says nothing
// (of a response that it refused it has applied a part), and keeps that.
func (s *Stream) delayed(k Key, h *held, want *Resource, now time.Time) (*Resource, verdict, bool) {
	if refused := h.refusal(removal); h.since == 0 || refused != nil && h.since == refused.at {
		h.since = at(now)
	}
	if !h.known && !s.resumed && !s.runs {
		if last := s.proofs.Last(k); last != nil && s.ready(last) && last.Version.Sequence <= want.Version.Sequence && !h.parks(last) {
			return last, sends, false
		}
		if stand := s.missing(k); stand != nil && !h.parks(stand) {
			return stand, sends, false
		}
		return want, sends, true
	}
	if now.Before(h.since.Add(s.config.RouteDeadline)) {
		return nil, waits, false
	}
	return want, sends, true
}

// stands says that a resource stands for one that is not there. It can be taken by
// every proxy, and is nothing to come back to.
func (s *Stream) stands(r *Resource) bool {
	if s.view.Get(r.Type, r.Name) == r { // as nearly all: to make what stands for it costs more
		return false
	}
	stand := s.missing(Key{r.Type, r.Name})
	return stand != nil && stand.Version == r.Version
}
