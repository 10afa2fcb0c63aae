// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// MaxPending bounds the transitions kept for one object. An autoscaler's busiest
// minute fits; beyond it the newest ones are merged into one that is not contiguous.
const MaxPending = 64

// Transition is one step of one object's life, as the watch delivered it.
type Transition struct {
	// Prev is the version before; nil without a known one.
	Prev *Object
	// Next is the version after, nil for a deletion.
	Next *Object
	// Contiguous says that Prev is the version right before Next (or, with Prev
	// nil, that Next is the object's first version), so that exactly one write
	// lies between them. After a relist or an overflow it is false.
	Contiguous bool
	// SeenAt is when the watch delivered it.
	SeenAt time.Time
}

// View has the known facts of one object.
type View struct {
	// Current is the newest version, nil when the object does not exist.
	Current *Object
	// Pending are the transitions that are not settled yet, oldest first.
	Pending []Transition
	// Progress is the newest version of the kind that the watch has come to: the known
	// version of the object is as new as that, or newer.
	Progress string
	// Unknown is non-nil while the object is unknown, so that even its absence is: its
	// kind is not listed yet, may not be read, or is not watched.
	Unknown error
}

// entry is the record of one object.
type entry struct {
	current *Object
	pending []Transition
}

// store keeps the objects of one kind; the reflector fills it.
type store struct {
	gvk      schema.GroupVersionKind
	now      func() time.Time
	changed  func(Key)
	overflow func(Key)
	ready    func(schema.GroupVersionKind)
	quota    *quota

	mu      sync.Mutex
	objects map[nsName]*entry
	synced  bool
	// failure is the last request's error, nil when it succeeded.
	failure      error
	failingSince time.Time
	// contact is when the API server last answered.
	contact time.Time
	// progress is the version that the watch has come to.
	progress string
}

type nsName struct{ namespace, name string }

var _ cache.ReflectorStore = (*store)(nil)

func newStore(gvk schema.GroupVersionKind, now func() time.Time, l *quota, changed, overflow func(Key), ready func(schema.GroupVersionKind)) *store {
	s := &store{
		gvk: gvk, now: now, changed: changed, overflow: overflow, ready: ready, quota: l,
		objects: map[nsName]*entry{},
	}
	l.register(s)
	return s
}

func (s *store) key(n nsName) Key {
	return Key{GroupVersionKind: s.gvk, Namespace: n.namespace, Name: n.name}
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.put(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error { return s.put(obj) }

func (s *store) put(obj any) error {
	next, err := asObject(obj)
	if err != nil {
		return err
	}
	id := nsName{next.Namespace, next.Name}
	s.mu.Lock()
	s.contact, s.progress = s.now(), next.ResourceVersion
	s.quota.landObject(s, next)
	moved, full := s.advance(id, next, true)
	s.accountEntry(id)
	s.mu.Unlock()
	s.tell(id, moved, full)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	last, err := asObject(obj)
	if err != nil {
		return err
	}
	id := nsName{last.Namespace, last.Name}
	s.mu.Lock()
	s.contact, s.progress = s.now(), last.ResourceVersion
	s.quota.landObject(s, last)
	moved, full := s.remove(id, last, true)
	s.accountEntry(id)
	s.mu.Unlock()
	s.tell(id, moved, full)
	return nil
}

// Replace implements cache.ReflectorStore: the result of a list. No event told of the
// changes between the last event and the list.
func (s *store) Replace(list []any, version string) error {
	fresh := make(map[nsName]*Object, len(list))
	for _, item := range list {
		object, err := asObject(item)
		if err != nil {
			return err
		}
		fresh[nsName{object.Namespace, object.Name}] = object
	}
	var told []nsName
	var overflown []nsName
	s.mu.Lock()
	first := !s.synced
	s.synced, s.contact, s.progress = true, s.now(), version
	note := func(id nsName, moved, full bool) {
		if moved || first {
			told = append(told, id)
		}
		if full {
			overflown = append(overflown, id)
		}
	}
	for id, e := range s.objects {
		if _, ok := fresh[id]; !ok && e.current != nil {
			moved, full := s.remove(id, nil, false)
			s.accountEntry(id)
			note(id, moved, full)
		}
	}
	for id, object := range fresh {
		s.quota.landObject(s, object)
		moved, full := s.relisted(id, object, first)
		s.accountEntry(id)
		note(id, moved, full)
	}
	s.mu.Unlock()
	for _, id := range overflown {
		s.overflow(s.key(id))
	}
	for _, id := range told {
		s.changed(s.key(id))
	}
	if first {
		s.ready(s.gvk)
	}
	return nil
}

// Resync implements cache.ReflectorStore, and sends no object again.
func (s *store) Resync() error { return nil }

// Bookmark implements cache.ReflectorBookmarkStore: a sign of life, and of how
// far the watch is.
func (s *store) Bookmark(version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contact, s.progress = s.now(), version
	return nil
}

// relisted takes one object of a list. The first list has no history: the version
// before is the one that the Baseline remembers.
func (s *store) relisted(id nsName, object *Object, first bool) (moved, full bool) {
	if first {
		s.objects[id] = &entry{current: object}
		return true, false
	}
	// An equal resourceVersion means that there was no write, so no event was missed. If the
	// content differs, the API server has filled in another default.
	e := s.objects[id]
	unwritten := e != nil && e.current != nil && e.current.UID == object.UID && e.current.ResourceVersion == object.ResourceVersion
	return s.advance(id, object, unwritten)
}

// advance moves an object to its next version.
func (s *store) advance(id nsName, next *Object, contiguous bool) (moved, full bool) {
	e := s.objects[id]
	if e == nil {
		e = &entry{}
		s.objects[id] = e
	}
	prev := e.current
	if prev != nil && prev.FullHash == next.FullHash && !prev.Partial() && !next.Partial() {
		next.body = prev.body // one copy of equal bodies
	}
	e.current = next
	if prev != nil && prev.sameContent(next) {
		next.shareMetadata(prev)
		return next.becameReady(prev), false
	}
	if prev != nil && prev.UID != next.UID {
		contiguous = false // the deletion between them was not seen
	}
	full = e.push(Transition{Prev: prev, Next: next, Contiguous: contiguous, SeenAt: s.now()})
	return true, full
}

// remove records that an object is gone. last is its final version as far as
// the watch gave it.
func (s *store) remove(id nsName, last *Object, contiguous bool) (moved, full bool) {
	e := s.objects[id]
	if e == nil {
		if last == nil {
			return false, false
		}
		e = &entry{}
		s.objects[id] = e
	}
	prev := e.current
	if last != nil {
		// The final version carries the deletion's own resourceVersion; its
		// content is that of the version before, deletionTimestamp included.
		prev = last
	}
	e.current = nil
	full = e.push(Transition{Prev: prev, Contiguous: contiguous, SeenAt: s.now()})
	return true, full
}

// push appends a transition. A full queue keeps the old transitions, and merges the
// new ones into one transition that is not contiguous.
func (e *entry) push(t Transition) (overflow bool) {
	if len(e.pending) < MaxPending {
		e.pending = append(e.pending, t)
		return false
	}
	tail := &e.pending[len(e.pending)-1]
	tail.Next, tail.Contiguous = t.Next, false
	if t.Next == nil {
		tail.Prev = t.Prev
	}
	return true
}

// view copies the known facts of one object.
func (s *store) view(id nsName) View {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced {
		return View{Unknown: s.unsynced()}
	}
	e := s.objects[id]
	if e == nil {
		return View{Progress: s.progress}
	}
	v := View{Current: e.current, Progress: s.progress}
	v.Pending = append(v.Pending, e.pending...)
	return v
}

func (s *store) unsynced() error {
	if s.failure != nil {
		return fmt.Errorf("%s cannot be read: %w", s.gvk.Kind, s.failure)
	}
	return fmt.Errorf("%s is not listed yet", s.gvk.Kind)
}

// settle drops the n oldest transitions, and the record of a deleted object without
// further transitions. n counts the transitions that a View handed out. A tail that
// was merged since then has moved on and stays.
func (s *store) settle(id nsName, seen []Transition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.objects[id]
	if e == nil {
		return
	}
	n := min(len(seen), len(e.pending))
	if n > 0 && !e.pending[n-1].Next.isVersion(seen[n-1].Next) {
		e.pending[n-1].Prev, e.pending[n-1].Contiguous = seen[n-1].Next, false
		n--
	}
	e.pending = append([]Transition(nil), e.pending[n:]...)
	if len(e.pending) == 0 {
		e.pending = nil
		if e.current == nil {
			delete(s.objects, id)
		}
	}
	s.accountEntry(id)
}

func (s *store) tell(id nsName, moved, full bool) {
	if full {
		s.overflow(s.key(id))
	}
	if moved {
		s.changed(s.key(id))
	}
}

// report is told how each request to the API server went.
func (s *store) report(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.failure, s.failingSince, s.contact = nil, time.Time{}, s.now()
		return
	}
	if s.failure == nil {
		s.failingSince = s.now()
	}
	s.failure = err
}

func asObject(obj any) (*Object, error) {
	object, ok := obj.(*Object)
	if !ok {
		return nil, fmt.Errorf("storing an object: %T is no *kube.Object", obj)
	}
	return object, nil
}

func (s *store) ids() []nsName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.objects))
}

func (s *store) health() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Health{
		Synced: s.synced, Failure: s.failure, FailingSince: s.failingSince, Contact: s.contact, Progress: s.progress,
	}
}
