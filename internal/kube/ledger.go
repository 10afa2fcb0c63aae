// SPDX-License-Identifier: Apache-2.0

package kube

import "sync"

// ledger accounts for the memory of all kept objects, over all kinds, and drops content
// when it grows beyond its budget. Objects count from the moment at which they are read
// from the wire, because a list holds all its objects before the store has any.
type ledger struct {
	// budget in bytes; zero is no bound.
	budget int64

	mu     sync.Mutex
	owners map[*store]bool
	// namespaces that hold anything, by name.
	namespaces map[string]*account
	total      int64
	// stuck is the total at which the last eviction found nothing more to drop.
	stuck int64
}

// account sums up one namespace.
type account struct {
	held     int64
	holdings map[place]holding
}

// place is where content lies: the entry of an object, or an object on its way to the store.
type place struct {
	owner   *store
	name    nsName
	arrival *blob
}

// holding is the memory of one place.
type holding struct {
	fixed int64
	blobs []*blob
}

func (h holding) droppable() int64 {
	var sum int64
	for _, b := range h.blobs {
		sum += b.size()
	}
	return sum
}

func newLedger(budget int64) *ledger {
	return &ledger{budget: budget, owners: map[*store]bool{}, namespaces: map[string]*account{}}
}

// register begins to account for a store.
func (l *ledger) register(owner *store) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owners[owner] = true
}

// forget ends the accounts of a store.
func (l *ledger) forget(owner *store) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.owners, owner)
	l.removeWhere(func(p place) bool { return p.owner == owner })
}

// resetArrivals forgets the objects that were read for a store and never came there.
func (l *ledger) resetArrivals(owner *store) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeWhere(func(p place) bool { return p.owner == owner && p.arrival != nil })
}

// admitObject accounts for an object on its way to a store.
func (l *ledger) admitObject(owner *store, o *Object) {
	if o.body == nil && o.managed == nil {
		return
	}
	l.setHolding(arrivalOf(owner, o), o.holding())
}

// landObject ends the account of an object on its way: from now on the store accounts for it.
func (l *ledger) landObject(owner *store, o *Object) {
	if o.body == nil && o.managed == nil {
		return
	}
	l.setHolding(arrivalOf(owner, o), holding{})
}

func arrivalOf(owner *store, o *Object) place {
	p := place{owner: owner, name: nsName{o.Namespace, o.Name}, arrival: o.body}
	if p.arrival == nil {
		p.arrival = o.managed
	}
	return p
}

// setHolding accounts for a place anew, and drops content beyond the budget.
func (l *ledger) setHolding(at place, h holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.owners[at.owner] {
		return
	}
	l.remove(at)
	if h.fixed == 0 && len(h.blobs) == 0 {
		return
	}
	a := l.namespaces[at.name.namespace]
	if a == nil {
		a = &account{holdings: map[place]holding{}}
		l.namespaces[at.name.namespace] = a
	}
	// A blob can be dropped only under this lock, so sizes do not change meanwhile.
	size := h.fixed + h.droppable()
	a.holdings[at] = h
	a.held += size
	l.total += size
	l.evictContent()
}

func (l *ledger) removeWhere(gone func(place) bool) {
	for _, a := range l.namespaces {
		for at := range a.holdings {
			if gone(at) {
				l.remove(at)
			}
		}
	}
}

func (l *ledger) remove(at place) {
	a := l.namespaces[at.name.namespace]
	if a == nil {
		return
	}
	h, ok := a.holdings[at]
	if !ok {
		return
	}
	size := h.fixed + h.droppable()
	a.held -= size
	l.total -= size
	delete(a.holdings, at)
	if len(a.holdings) == 0 {
		delete(l.namespaces, at.name.namespace)
	}
}

// hasRoom tells whether more content can be kept without a drop.
func (l *ledger) hasRoom(size int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.budget == 0 || l.total+size <= l.budget/10*9
}

// evictContent drops content until the budget holds. Where nothing can be dropped any more, it
// looks again only after the total has grown by a hundredth.
func (l *ledger) evictContent() {
	if l.budget == 0 || l.total <= l.budget {
		l.stuck = 0
		return
	}
	if l.stuck > 0 && l.total < l.stuck+l.budget/100 {
		return
	}
	claims := make([]claim, 0, len(l.namespaces))
	for name, a := range l.namespaces {
		c := claim{namespace: name, held: a.held}
		if a.held > l.budget/int64(len(l.namespaces)) {
			c.parts = a.listParts()
		}
		claims = append(claims, c)
	}
	for _, at := range chooseEvictions(claims, l.budget) {
		l.dropContent(at)
	}
	l.stuck = 0
	if l.total > l.budget {
		l.stuck = l.total
	}
}

func (a *account) listParts() []part {
	parts := make([]part, 0, len(a.holdings))
	for at, h := range a.holdings {
		if size := h.droppable(); size > 0 {
			parts = append(parts, part{at, size})
		}
	}
	return parts
}

// dropContent releases the content at a place; the metadata of the object stays.
func (l *ledger) dropContent(at place) {
	a := l.namespaces[at.name.namespace]
	h := a.holdings[at]
	size := h.droppable()
	for _, b := range h.blobs {
		b.drop()
	}
	a.held -= size
	l.total -= size
}

// releaseContent drops the content at a place, because no guard covers it.
func (l *ledger) releaseContent(at place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.namespaces[at.name.namespace]; a != nil {
		if _, ok := a.holdings[at]; ok {
			l.dropContent(at)
		}
	}
}

func (l *ledger) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}
