// SPDX-License-Identifier: Apache-2.0

package acknowledged

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// Proxy says whose a record is.
type Proxy struct{ UID, Namespace, Pod string }

// Route is what a proxy has of one.
type Route struct {
	Name string
	// Has is what it has acknowledged; zero when it has acknowledged none.
	Has ads.Version
	// Former is when the stream ended on which it was acknowledged. It is zero while that
	// goes on; on a later one the proxy has not said anything about it.
	Former time.Time
	// About is the version that Why is about: why it is not acknowledged. Empty when
	// nothing is known against it.
	About ads.Version
	Why   string
}

// Record is what is known about a proxy.
type Record struct {
	Proxy
	// Connected is when its last stream began, Left when that has ended; zero while it
	// has not.
	Connected, Left time.Time
	// Routes are sorted by name.
	Routes []Route
}

// route of a name; false if nothing is known about it.
func (r *Record) route(name string) (Route, bool) {
	i, found := slices.BinarySearchFunc(r.Routes, name, func(r Route, name string) int { return cmp.Compare(r.Name, name) })
	if !found {
		return Route{}, false
	}
	return r.Routes[i], true
}

// The bounds of an Index.
const (
	// maxWhy is how many bytes are kept of why something is not acknowledged: all proxies
	// may refuse one route.
	maxWhy = 512
	// remembered is how long, and maxLeft of how many proxies, it is known when they left.
	remembered = time.Hour
	maxLeft    = 10_000
)

// Index is what is known about the proxies of one replica. It may be used by many at
// once.
type Index struct {
	mu      sync.Mutex
	records map[string]*entry // by UID
	// first and last are the ends of a list of all records, that which changed last at
	// its end: so who reads what has changed looks at nothing else.
	first, last *entry
	revision    uint64
	routes      int
	// left are the proxies that have gone, in this order; some have come back since.
	left []gone
	// wake is closed at the next change; nil when nobody waits.
	wake chan struct{}
}

// entry is a record in the list, and when it changed.
type entry struct {
	Proxy
	connected, left time.Time
	slots           []slot // sorted by name
	streams         int
	revision        uint64
	prev, next      *entry
}

type gone struct {
	uid string
	at  time.Time
}

// NewIndex knows nobody.
func NewIndex() *Index { return &Index{records: map[string]*entry{}} }

// Opened notes a stream.
func (x *Index) Opened(p Proxy, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.entry(p)
	e.streams++
	e.connected, e.left = now, time.Time{}
	x.touch(e)
	for i := range e.slots {
		s := &e.slots[i]
		if s.former == 0 { // the stream before goes on, or is dead
			s.former = momentOf(now)
		}
		// Who reads changes may not have seen that the stream before had ended.
		s.changed = x.revision
	}
}

// Closed notes the end of a stream.
func (x *Index) Closed(p Proxy, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.records[p.UID]
	if e == nil {
		return
	}
	if e.streams--; e.streams > 0 {
		return // the one that has ended was dead for a while, as a rule
	}
	x.touch(e)
	x.leave(e, now, now)
}

// Happened notes what an effect says about routes with a sequence; a response is one
// that has been sent.
func (x *Index) Happened(p Proxy, effect ads.Effect) {
	switch f := effect.(type) {
	case ads.Acked:
		for _, r := range f.Resources {
			x.note(p, r, func(has *Route) { *has = Route{Name: has.Name, Has: r.Version} })
		}
	case ads.Rejected:
		x.note(p, f.Resource, func(has *Route) {
			has.About, has.Why = f.Resource.Version, "refuses "+f.Resource.Version.String()+": "+short(f.Message)
		})
	case ads.Late:
		x.note(p, f.Route, func(has *Route) {
			has.About, has.Why = f.Route.Version, "was sent "+f.Route.Version.String()+" before its endpoints were acknowledged, and has not answered"
		})
	case ads.Send:
		for _, r := range f.Resources {
			x.note(p, r, func(has *Route) {
				has.About, has.Why = r.Version, "was sent "+r.Version.String()+", and has not answered"
			})
		}
	case ads.Ahead:
		x.note(p, &ads.Resource{Type: ads.Route, Name: f.Route, Version: f.Version}, func(has *Route) { *has = Route{Name: has.Name, Has: f.Version} })
	case ads.Withheld, ads.Stalled, ads.Stale:
	}
}

// Explain notes why a route is not acknowledged, for a proxy that is connected.
func (x *Index) Explain(uid, route string, about ads.Version, why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.records[uid]
	if e == nil || !e.left.IsZero() {
		return
	}
	x.change(e, route, func(r *Route) { r.About, r.Why = about, short(why) })
}

// note changes what is known about a route, if it is one that somebody decides about.
func (x *Index) note(p Proxy, r *ads.Resource, change func(*Route)) {
	if r.Type != ads.Route || r.Version.Sequence == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.change(x.entry(p), r.Name, change)
}

// change what is known about a route of a proxy.
func (x *Index) change(e *entry, route string, change func(*Route)) {
	s := &e.slots[x.place(e, route)]
	before := s.route()
	after := before
	if change(&after); after == before {
		return
	}
	x.touch(e)
	s.set(after, x.revision)
}

// entry of a proxy, which is made if there is none.
func (x *Index) entry(p Proxy) *entry {
	e := x.records[p.UID]
	if e == nil {
		e = &entry{Proxy: p}
		x.records[p.UID] = e
	}
	return e
}

// place of a route in a record, where room is made if there is none.
func (x *Index) place(e *entry, name string) int {
	i, found := e.find(name)
	if !found {
		e.slots = slices.Insert(e.slots, i, slot{name: name})
		x.routes++
	}
	return i
}

func (e *entry) find(name string) (int, bool) {
	return slices.BinarySearchFunc(e.slots, name, func(s slot, name string) int { return cmp.Compare(s.name, name) })
}

// touch puts a record to the end of the list, under a revision of its own.
func (x *Index) touch(e *entry) {
	x.revision++
	e.revision = x.revision
	if x.last != e {
		x.unlink(e)
		if e.prev = x.last; x.last != nil {
			x.last.next = e
		} else {
			x.first = e
		}
		x.last = e
	}
	if x.wake != nil {
		close(x.wake)
		x.wake = nil
	}
}

// unlink takes a record out of the list, if it is there.
func (x *Index) unlink(e *entry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else if x.first == e {
		x.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else if x.last == e {
		x.last = e.prev
	}
	e.prev, e.next = nil, nil
}

// leave remembers when a proxy left, and forgets those that left long ago.
func (x *Index) leave(e *entry, at, now time.Time) {
	e.left = at
	for i := range e.slots {
		if s := &e.slots[i]; s.former == 0 {
			s.former = momentOf(at)
		}
	}
	x.left = append(x.left, gone{e.UID, at})
	for len(x.left) > maxLeft || len(x.left) > 0 && now.Sub(x.left[0].at) >= remembered {
		old := x.left[0]
		x.left = x.left[1:]
		if e := x.records[old.uid]; e != nil && e.left.Equal(old.at) {
			x.routes -= len(e.slots)
			x.unlink(e)
			delete(x.records, old.uid)
		}
	}
}
