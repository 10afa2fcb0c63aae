// SPDX-License-Identifier: Apache-2.0

package kube

import "sync"

// quota accounts for the memory of all kept objects, over all kinds, and drops content
// when it grows beyond its budget. Objects count from the moment at which they are read
// from the wire, because a list holds all its objects before the store has any.
type quota struct {
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

func newQuota(budget int64) *quota {
	return &quota{budget: budget, owners: map[*store]bool{}, namespaces: map[string]*account{}}
}

// register begins to account for a store.
func (q *quota) register(owner *store) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.owners[owner] = true
}

// forget ends the accounts of a store.
func (q *quota) forget(owner *store) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.owners, owner)
	q.removeWhere(func(p place) bool { return p.owner == owner })
}

// resetArrivals forgets the objects that were read for a store and never came there.
func (q *quota) resetArrivals(owner *store) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removeWhere(func(p place) bool { return p.owner == owner && p.arrival != nil })
}

// admitObject accounts for an object on its way to a store.
func (q *quota) admitObject(owner *store, o *Object) {
	if o.body == nil && o.managed == nil {
		return
	}
	q.setHolding(arrivalOf(owner, o), o.holding())
}

// landObject ends the account of an object on its way: from now on the store accounts for it.
func (q *quota) landObject(owner *store, o *Object) {
	if o.body == nil && o.managed == nil {
		return
	}
	q.setHolding(arrivalOf(owner, o), holding{})
}

func arrivalOf(owner *store, o *Object) place {
	p := place{owner: owner, name: nsName{o.Namespace, o.Name}, arrival: o.body}
	if p.arrival == nil {
		p.arrival = o.managed
	}
	return p
}

// setHolding accounts for a place anew, and drops content beyond the budget.
func (q *quota) setHolding(at place, h holding) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.owners[at.owner] {
		return
	}
	q.remove(at)
	if h.fixed == 0 && len(h.blobs) == 0 {
		return
	}
	a := q.namespaces[at.name.namespace]
	if a == nil {
		a = &account{holdings: map[place]holding{}}
		q.namespaces[at.name.namespace] = a
	}
	// A blob can be dropped only under this lock, so sizes do not change meanwhile.
	size := h.fixed + h.droppable()
	a.holdings[at] = h
	a.held += size
	q.total += size
	q.evictContent()
}

func (q *quota) removeWhere(gone func(place) bool) {
	for _, a := range q.namespaces {
		for at := range a.holdings {
			if gone(at) {
				q.remove(at)
			}
		}
	}
}

func (q *quota) remove(at place) {
	a := q.namespaces[at.name.namespace]
	if a == nil {
		return
	}
	h, ok := a.holdings[at]
	if !ok {
		return
	}
	size := h.fixed + h.droppable()
	a.held -= size
	q.total -= size
	delete(a.holdings, at)
	if len(a.holdings) == 0 {
		delete(q.namespaces, at.name.namespace)
	}
}

// hasRoom tells whether more content can be kept without a drop.
func (q *quota) hasRoom(size int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.budget == 0 || q.total+size <= q.budget/10*9
}

// evictContent drops content until the budget holds. Where nothing can be dropped any more, it
// looks again only after the total has grown by a hundredth.
func (q *quota) evictContent() {
	if q.budget == 0 || q.total <= q.budget {
		q.stuck = 0
		return
	}
	if q.stuck > 0 && q.total < q.stuck+q.budget/100 {
		return
	}
	claims := make([]claim, 0, len(q.namespaces))
	for name, a := range q.namespaces {
		c := claim{namespace: name, held: a.held}
		if a.held > q.budget/int64(len(q.namespaces)) {
			c.parts = a.listParts()
		}
		claims = append(claims, c)
	}
	for _, at := range chooseEvictions(claims, q.budget) {
		q.dropContent(at)
	}
	q.stuck = 0
	if q.total > q.budget {
		q.stuck = q.total
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
func (q *quota) dropContent(at place) {
	a := q.namespaces[at.name.namespace]
	h := a.holdings[at]
	size := h.droppable()
	for _, b := range h.blobs {
		b.drop()
	}
	a.held -= size
	q.total -= size
}

// releaseContent drops the content at a place, because no guard covers it.
func (q *quota) releaseContent(at place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.namespaces[at.name.namespace]; a != nil {
		if _, ok := a.holdings[at]; ok {
			q.dropContent(at)
		}
	}
}

func (q *quota) size() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}
