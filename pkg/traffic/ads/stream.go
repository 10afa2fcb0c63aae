// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"time"
)

// Config are the bounds of a Stream. A zero field is the default.
type Config struct {
	// RouteDeadline is how long a route waits for endpoints: 5 s.
	RouteDeadline time.Duration
	// RemovalDeadline is how long a cluster that goes away waits for routes: 30 s.
	RemovalDeadline time.Duration
	// AckDeadline is how long a response may be without an answer: 30 s.
	AckDeadline time.Duration
	// ClustersUnasked is when a proxy that asks for everything but clusters is sent
	// them all the same: 1 s. Envoy forgets to ask when it reconnects while a cluster
	// is stuck (envoyproxy/envoy#34334).
	ClustersUnasked time.Duration
	// Batch is how many resources a response has at most: 100.
	Batch int
	// Window is how many bytes of one type are on the way at most, unless one resource
	// alone has more: 256 KiB.
	Window int
	// Unanswered is how many responses of one type are on the way at most: 64.
	Unanswered int
}

func (c Config) withDefaults() Config {
	return Config{
		RouteDeadline:   cmp.Or(c.RouteDeadline, 5*time.Second),
		RemovalDeadline: cmp.Or(c.RemovalDeadline, 30*time.Second),
		AckDeadline:     cmp.Or(c.AckDeadline, 30*time.Second),
		ClustersUnasked: cmp.Or(c.ClustersUnasked, time.Second),
		Batch:           cmp.Or(c.Batch, 100),
		Window:          cmp.Or(c.Window, 256<<10),
		Unanswered:      cmp.Or(c.Unanswered, 64),
	}
}

// Proofs remember, for all streams, what some Envoy has acknowledged.
type Proofs interface {
	// Proven says that an Envoy has acknowledged this version.
	Proven(*Resource) bool
	// Prove remembers that one has.
	Prove(*Resource)
	// Last is the version of a name that was acknowledged last; nil when none was.
	Last(Key) *Resource
}

// Missing makes what stands for a resource that a proxy asks for by name and that
// is not there: no endpoints, or a route that answers 503. Nil for clusters and
// listeners: of those the proxy is told that they are gone.
type Missing func(Key) *Resource

// Stream decides what one proxy is sent. Its methods are not to be called at once.
type Stream struct {
	config  Config
	proofs  Proofs
	missing Missing

	view *View
	// old says that newer versions than those of the view may be at the proxy.
	old    bool
	types  [types]subscriptions
	flight []*response
	nonce  uint64
	// resumed says that the proxy had something when the stream began.
	resumed bool
	// runs says that the proxy had its whole view when another view came. Its start does not
	// wait for the names that it asks for since then.
	runs bool
	// had are versions that the proxy reported to have, and that are still to be told.
	had []*Resource
	// ahead are routes that the proxy reported of later decisions, and that are still to be told.
	ahead []Ahead
	// answered is the highest nonce that was answered.
	answered uint64
	// suspects are clusters that were taken away, one after the other, to see whether
	// the proxy then acknowledges the others again; suspectedAt is when the last one was, zero
	// when there is none left.
	suspects    []string
	suspectedAt time.Time
	// began is when the first request came.
	began time.Time
}

// subscriptions are what the proxy wants of one type, and has.
type subscriptions struct {
	// open says that the proxy has asked for the type; wildcard, for all of it.
	open, wildcard bool
	// awaited says that a proxy that starts waits for the first response, which has
	// nothing in it if there is nothing: before that it opens no listener.
	awaited bool
	kind    Type
	// held are the names of which something is kept, common what is known of all others. One that
	// is nil is a name of the common view that the proxy neither wants nor has.
	held   map[string]*held
	common common
	// full says that what is to be sent now waits for answers, and for no time.
	full bool
	// unsettled are the names that may need something; nil when there are none, since an
	// empty map keeps the room for all that it once had.
	unsettled map[string]struct{}
	// order are these, sorted, and perhaps names that were settled since; nil when another name has come.
	order []string
}

// expect makes room for so many names at once, if there are none yet: what a map leaves
// behind while it grows lies between what stays, and is of use to nobody. A proxy may
// name one thing many times, so the room is bounded.
func (own *subscriptions) expect(names int) {
	if names = min(names, 1_000); len(own.held) == 0 && names > 0 {
		own.held, own.unsettled = make(map[string]*held, names), make(map[string]struct{}, names)
	}
}

// unsettle has a name looked at.
func (own *subscriptions) unsettle(name string) {
	if _, is := own.unsettled[name]; is {
		return
	}
	if own.unsettled == nil {
		own.unsettled = map[string]struct{}{}
	}
	own.unsettled[name], own.order = struct{}{}, nil
}

// settle has a name no longer looked at.
func (own *subscriptions) settle(name string) {
	delete(own.unsettled, name)
	if len(own.unsettled) == 0 {
		own.unsettled, own.order = nil, nil
	}
}

// held is what is known about one name at the proxy. There are many of these, so
// what is small stands together, and moments are numbers.
type held struct {
	// told is the version that it has, if it is known, and nil when that is [gone]. It is
	// that of a resource, which all proxies share, unless only the proxy has said so.
	told *Version
	// has is its content, nil when only the proxy has said so, and what it was when the
	// proxy has asked anew.
	has *Resource
	// sent is on the way under this nonce.
	sent  *Resource
	nonce uint64
	// parked were refused; nil when none was.
	parked *refusals
	// since is when it began to wait for something else, acknowledged when it was
	// acknowledged last.
	since, acknowledged moment

	// named says that the proxy asked for the name itself; known, that it has it.
	named, known bool
	origin       origin
	// removing says that a removal is on the way.
	removing bool
	// again says that it is sent although the version is the same; alone, that it
	// shares its response with no other; expelled, that it is taken away; acquitted,
	// that this has changed nothing.
	again, alone, expelled, acquitted bool
}

// origin says how a name came to the stream.
type origin uint8

const (
	given    origin = iota // it was there, or the proxy has acknowledged it since
	reported               // the version is what the proxy had when the stream began
	strange                // the proxy asked for it when it was not there
)

// asked anew a name is no longer reported.
func (o origin) asked() origin {
	if o == reported {
		return given
	}
	return o
}

// version that it has, if it is known.
func (h *held) version() Version {
	if h.told == nil {
		return gone
	}
	return *h.told
}

// moment is a time in nanoseconds since 1970; 0 is none.
type moment int64

func at(t time.Time) moment { return moment(t.UnixNano()) }

func (m moment) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m))
}

// Add gives the time so much later.
func (m moment) Add(d time.Duration) time.Time { return m.time().Add(d) }

// response is one that has no answer yet.
type response struct {
	kind      Type
	nonce     uint64
	text      string // of the nonce
	at        time.Time
	bytes     int
	resources []*Resource
	removed   []string
	told      bool // that it is late
}

// NewStream begins with a view, which may be nil as long as there is none.
func NewStream(config Config, proofs Proofs, missing Missing, view *View) *Stream {
	s := &Stream{config: config.withDefaults(), proofs: proofs, missing: missing, view: view}
	for t := range s.types {
		s.types[t].kind = Type(t)
	}
	return s
}

// Publish goes over to another view. changed are the keys that differ, as [Diff]
// tells them.
func (s *Stream) Publish(now time.Time, view *View, changed []Key) []Effect {
	s.runs = s.runs || s.Settled()
	s.view = view
	for _, k := range changed {
		s.touch(k.Type, k.Name)
	}
	return s.settle(now, nil)
}

// Age says whether the view is old, because the watches of its replica have heard nothing for long.
// As long as it is, what the proxy reported when its stream began is not taken back: it may have
// come from another replica, whose watches go on.
func (s *Stream) Age(now time.Time, old bool) []Effect {
	s.old = old
	return s.settle(now, nil)
}

// holds says that the proxy keeps what it reported, since the view is old.
func (s *Stream) holds(h *held, want *Resource) bool {
	if !s.old || h.origin != reported || !h.known {
		return false
	}
	return want == nil || want.Version != h.version() && want.Version.Sequence <= h.version().Sequence
}

// touch looks at a name again, if the proxy wants it.
func (s *Stream) touch(t Type, name string) {
	own := &s.types[t]
	if own.find(name) == nil {
		there := s.view.Get(t, name) != nil
		if there && own.common.view != nil {
			own.put(name, nil) // it is not had as the others are
		}
		if !own.wildcard || !there {
			return
		}
		own.put(name, &held{})
	}
	own.unsettle(name)
}

// Tick does what time alone brings about.
func (s *Stream) Tick(now time.Time) []Effect {
	effects := s.overdue(now)
	if at := s.unasked(); !at.IsZero() && !now.Before(at) {
		s.open(Cluster, true)
	}
	return s.settle(now, effects)
}

// overdue deals with responses that have had no answer for long.
func (s *Stream) overdue(now time.Time) []Effect {
	var effects []Effect
	for _, r := range s.flight {
		if now.Before(r.at.Add(s.config.AckDeadline)) {
			continue
		}
		if !r.told {
			r.told = true
			effects = append(effects, Stalled{r.kind, r.text})
		}
		if r.kind == Cluster && s.answered > r.nonce { // it answers, but not this
			s.suspect(now)
		}
	}
	return effects
}

// unasked is when clusters are sent without a request; zero when never.
func (s *Stream) unasked() time.Time {
	if s.began.IsZero() || s.types[Cluster].open {
		return time.Time{}
	}
	return s.began.Add(s.config.ClustersUnasked)
}

// open begins with a type.
func (s *Stream) open(t Type, wildcard bool) {
	own := &s.types[t]
	own.open = true
	if !wildcard || own.wildcard {
		return
	}
	own.wildcard = true
	own.spread()
	own.expect(len(s.view.Names(t)))
	for _, name := range s.view.Names(t) {
		s.touch(t, name)
	}
	for name := range own.held { // those that it has and that are gone
		own.unsettle(name)
	}
}

// Next is when Tick has something to do; zero when only events bring anything.
func (s *Stream) Next() time.Time {
	next := s.unasked()
	for _, r := range s.flight {
		if !r.told {
			next = earlier(next, r.at.Add(s.config.AckDeadline))
		}
	}
	if !s.suspectedAt.IsZero() {
		next = earlier(next, s.suspectedAt.Add(suspicion))
	}
	for t := range s.types {
		if s.types[t].full {
			continue
		}
		for name := range s.types[t].unsettled {
			h := s.types[t].held[name]
			if h == nil || h.since == 0 || h.sent != nil || h.removing {
				continue
			}
			next = earlier(next, h.since.Add(s.patience(Key{Type(t), name})))
		}
	}
	return next
}

// patience is how long a name waits at most: a route that is there for endpoints, and all else before it
// goes.
func (s *Stream) patience(k Key) time.Duration {
	if k.Type == Route && s.view.Get(Route, k.Name) != nil {
		return s.config.RouteDeadline
	}
	return s.config.RemovalDeadline
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
