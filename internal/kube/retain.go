// SPDX-License-Identifier: Apache-2.0

package kube

import "slices"

// accountEntry tells the quota what the entry of an object holds now; the caller holds the lock.
func (s *store) accountEntry(id nsName) {
	s.quota.setHolding(s.place(id), s.objects[id].holding())
}

func (s *store) place(id nsName) place { return place{owner: s, name: id} }

// holding sums up the versions of an entry, each of them once.
func (e *entry) holding() holding {
	var h holding
	if e == nil {
		return h
	}
	var seen []*Object
	add := func(o *Object) {
		// Equal versions lie next to each other: one is the Next of a transition, and then a Prev.
		if o == nil || slices.Contains(seen[max(0, len(seen)-2):], o) {
			return
		}
		seen = append(seen, o)
		part := o.holding()
		h.fixed += part.fixed
		for _, b := range part.blobs {
			if !slices.Contains(h.blobs[max(0, len(h.blobs)-4):], b) {
				h.blobs = append(h.blobs, b)
			}
		}
	}
	for i := range e.pending {
		add(e.pending[i].Prev)
		add(e.pending[i].Next)
	}
	add(e.current)
	return h
}

// restoreContent gives the present version of an object its content back, as far as there is room
// for it without a drop of other content.
func (s *store) restoreContent(id nsName, live *Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.objects[id]
	if e == nil || e.current == nil || !e.current.Partial() || !e.current.isVersion(live) || live.Partial() {
		return
	}
	if !s.quota.hasRoom(live.ContentBytes()) {
		return
	}
	partial, whole := e.current, *e.current
	whole.body, whole.managed = newBlob(live.body.read()), newBlob(live.managed.read())
	e.current = &whole
	for i := range e.pending {
		t := &e.pending[i]
		if t.Prev == partial {
			t.Prev = &whole
		}
		if t.Next == partial {
			t.Next = &whole
		}
	}
	s.accountEntry(id)
}

// releaseContent drops the content of objects that no guard covers any more.
func (s *store) releaseContent(keep func(namespace string) Detail) {
	keep = askOnce(keep)
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.objects {
		if keep(id.namespace) != DetailWhole {
			s.quota.releaseContent(s.place(id))
		}
	}
}

// Retained sums up the memory of all objects.
type Retained struct {
	// Bytes are the memory of the objects, and Budget is its bound; zero is no bound.
	Bytes, Budget int64
	// Unguarded and Dropped count the objects without content, because no guard covers
	// them, and because the budget did not suffice.
	Unguarded, Dropped int
}

// Retained sums up the memory of all objects.
func (t *Tracker) Retained() Retained {
	r := Retained{Bytes: t.quota.size(), Budget: t.quota.budget}
	for _, gvk := range t.Kinds() {
		if s := t.store(gvk); s != nil {
			s.countPartial(&r, func(namespace string) Detail { return t.keep(gvk, namespace) })
		}
	}
	return r
}

// askOnce asks once for each namespace, because keep asks all guards.
func askOnce(keep func(namespace string) Detail) func(namespace string) Detail {
	answers := map[string]Detail{}
	return func(namespace string) Detail {
		answer, asked := answers[namespace]
		if !asked {
			answer = keep(namespace)
			answers[namespace] = answer
		}
		return answer
	}
}

func (s *store) countPartial(r *Retained, keep func(namespace string) Detail) {
	keep = askOnce(keep)
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.objects {
		switch {
		case e.current == nil || !e.current.Partial():
		case keep(id.namespace) == DetailWhole:
			r.Dropped++
		default:
			r.Unguarded++
		}
	}
}

// RestoreContent gives an object its content back, which a live read has found.
func (t *Tracker) RestoreContent(key Key, live *Object) {
	if s := t.store(key.GroupVersionKind); s != nil {
		s.restoreContent(nsName{key.Namespace, key.Name}, live)
	}
}

// ReleaseContent drops the content of all objects that no guard covers any more.
func (t *Tracker) ReleaseContent() {
	for _, gvk := range t.Kinds() {
		if s := t.store(gvk); s != nil {
			s.releaseContent(func(namespace string) Detail { return t.keep(gvk, namespace) })
		}
	}
}
