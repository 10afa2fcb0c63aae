// SPDX-License-Identifier: Apache-2.0

package acknowledged

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// Change is what is new about a proxy: when it came and left, and those of its routes
// that have changed. Its moments are those of the clock of whoever told it.
type Change struct {
	Proxy
	Connected, Left time.Time
	Routes          []Route
}

// Cursor is how far somebody has read. The zero one has read nothing.
type Cursor struct {
	// at is the revision of the record that was read last. Of a record that has changed
	// since, what had changed before may not have been read, but for what was there when
	// everything was: that is base.
	at, base uint64
}

// Since are the changes after a cursor, those first that came first, and the cursor
// for the next time; more says that there are others. They are of so many proxies and
// routes together at most, or of one proxy.
func (x *Index) Since(read Cursor, limit int) (changes []Change, next Cursor, more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for e := x.after(read.at); e != nil; e = e.next {
		c := e.since(read.base)
		if limit -= 1 + len(c.Routes); limit < 0 && len(changes) > 0 {
			return changes, read, true
		}
		changes, read.at = append(changes, c), e.revision
	}
	read.base = read.at
	return changes, read, false
}

// after is the first record that has changed after a revision; nil if none has.
func (x *Index) after(revision uint64) *entry {
	if revision == 0 {
		return x.first
	}
	var e *entry
	for before := x.last; before != nil && before.revision > revision; before = before.prev {
		e = before
	}
	return e
}

// since has the routes that have changed after a revision.
func (e *entry) since(revision uint64) Change {
	c := Change{Proxy: e.Proxy, Connected: e.connected, Left: e.left}
	for i := range e.slots {
		if s := &e.slots[i]; s.changed > revision {
			c.Routes = append(c.Routes, s.route())
		}
	}
	return c
}

// Acknowledged is what a proxy has acknowledged of a route on its stream; false if it has nothing that
// somebody decided about.
func (x *Index) Acknowledged(uid, route string) (ads.Version, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.records[uid]
	if e == nil {
		return ads.Version{}, false
	}
	i, found := e.find(route)
	if !found || e.slots[i].former != 0 || e.slots[i].has.Hash == "" {
		return ads.Version{}, false
	}
	return e.slots[i].has, true
}

// Changed is closed at the next change.
func (x *Index) Changed() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.wake == nil {
		x.wake = make(chan struct{})
	}
	return x.wake
}

// Merge takes over a change that another Index has told. Its strings are kept.
func (x *Index) Merge(c Change, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.entry(c.Proxy)
	e.connected, e.left = c.Connected, time.Time{}
	x.touch(e)
	for _, r := range c.Routes {
		e.slots[x.place(e, r.Name)].set(r, x.revision)
	}
	if !c.Left.IsZero() {
		x.leave(e, c.Left, now)
	}
}

// Size is how many proxies and routes of them it knows.
func (x *Index) Size() (proxies, routes int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.records), x.routes
}

// atOnce is how many records are read before a session that notes an answer has its turn.
const atOnce = 256

// Records of these proxies, by UID, each with those of the routes that it has; nil asks for
// all proxies. The caller may keep them. Each record is of one moment, and two of them may
// be of two.
func (x *Index) Records(uids, routes []string) map[string]Record {
	if uids == nil {
		uids = x.uids()
	}
	routes = slices.Sorted(slices.Values(routes))
	records := make(map[string]Record, len(uids))
	for some := range slices.Chunk(uids, atOnce) {
		x.read(some, routes, records)
	}
	return records
}

// uids of all proxies, those first that have not changed for the longest time.
func (x *Index) uids() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	uids := make([]string, 0, len(x.records))
	for e := x.first; e != nil; e = e.next {
		uids = append(uids, e.UID)
	}
	return uids
}

func (x *Index) read(uids, routes []string, into map[string]Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, uid := range uids {
		e := x.records[uid]
		if e == nil {
			continue
		}
		r := Record{Proxy: e.Proxy, Connected: e.connected, Left: e.left}
		for _, name := range routes {
			if i, found := e.find(name); found {
				r.Routes = append(r.Routes, e.slots[i].route())
			}
		}
		into[uid] = r
	}
}

// Held are the names of the routes that proxies have on streams that go on, of those that
// somebody has decided about.
func (x *Index) Held() map[string]bool {
	held := map[string]bool{}
	for some := range slices.Chunk(x.uids(), atOnce) {
		x.hold(some, held)
	}
	return held
}

func (x *Index) hold(uids []string, into map[string]bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, uid := range uids {
		e := x.records[uid]
		if e == nil || !e.left.IsZero() {
			continue
		}
		for i := range e.slots {
			if s := &e.slots[i]; s.former == 0 && s.has.Sequence > 0 {
				into[s.name] = true
			}
		}
	}
}

// Behind are connected proxies that have a route in a lower sequence than the newest,
// at most so many, by UID, with the names of these routes.
func (x *Index) Behind(newest map[string]ads.Version, limit int) map[string][]string {
	behind := map[string][]string{}
	// What has not changed for the longest time waits for the longest time.
	for some := range slices.Chunk(x.uids(), atOnce) {
		x.behind(some, newest, limit, behind)
	}
	return behind
}

func (x *Index) behind(uids []string, newest map[string]ads.Version, limit int, into map[string][]string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, uid := range uids {
		e := x.records[uid]
		if e == nil || !e.left.IsZero() || len(into) >= limit {
			continue
		}
		for i := range e.slots {
			if s := &e.slots[i]; s.has.Sequence < newest[s.name].Sequence {
				into[uid] = append(into[uid], s.name)
			}
		}
	}
}
