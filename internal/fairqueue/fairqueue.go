// SPDX-License-Identifier: Apache-2.0

// Package fairqueue has a work queue for controllers that serves the namespaces in turn.
package fairqueue

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is a work queue that hands out the objects of the namespaces in turn, one of
// each (round robin). So a tenant who writes many objects delays an object of another
// tenant by one object at a time. Objects that were added with a negative priority come
// after all others, in turns of their own.
type Queue[K comparable] struct {
	workqueue.TypedRateLimitingInterface[K]
	turns *turns[K]
}

var _ priorityqueue.PriorityQueue[string] = (*Queue[string])(nil)

// New makes a queue with the name that its metrics have. The limiter says when a key is tried again.
func New[K comparable](name string, limiter workqueue.TypedRateLimiter[K], namespaceOf func(K) string) *Queue[K] {
	t := &turns[K]{waiting: map[K]bool{}, asked: map[K]bool{}}
	t.news.namespaceOf, t.later.namespaceOf = namespaceOf, namespaceOf
	inner := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: name, Queue: t})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Queue: inner})
	return &Queue[K]{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[K]{DelayingQueue: delaying}),
		turns: t,
	}
}

// ForRequests makes a queue for a controller of the builder.
func ForRequests(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return New(name, limiter, func(request reconcile.Request) string { return request.Namespace })
}

// Add adds an object that has news of its own.
func (q *Queue[K]) Add(key K) {
	q.turns.ask(key, false)
	q.TypedRateLimitingInterface.Add(key)
}

// AddWithOpts adds objects. A priority counts for what is added at once.
func (q *Queue[K]) AddWithOpts(o priorityqueue.AddOpts, keys ...K) {
	for _, key := range keys {
		switch {
		case o.RateLimited:
			q.AddRateLimited(key)
		case o.After > 0:
			q.AddAfter(key, o.After)
		default:
			q.turns.ask(key, o.Priority != nil && *o.Priority < 0)
			q.TypedRateLimitingInterface.Add(key)
		}
	}
}

// GetWithPriority waits for the next object. The priority is always 0.
func (q *Queue[K]) GetWithPriority() (key K, priority int, shutdown bool) {
	key, shutdown = q.Get()
	return key, 0, shutdown
}

// turns is the storage of a Queue, which calls Touch, Push, Len and Pop one at a time.
type turns[K comparable] struct {
	news, later ring[K]
	// waiting are the keys in later; false once news of the object overtook it.
	waiting map[K]bool
	// overtaken counts the keys that are false in waiting.
	overtaken int

	mu sync.Mutex
	// asked are the keys that are being added, and whether only for later.
	asked map[K]bool
}

// ask notes how a key is about to be added. Later never takes news back.
func (t *turns[K]) ask(key K, later bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, asked := t.asked[key]
	t.asked[key] = later && (!asked || before)
}

// take tells whether a key is added only for later.
func (t *turns[K]) take(key K) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	later := t.asked[key]
	delete(t.asked, key)
	return later
}

// Push implements workqueue.Queue.
func (t *turns[K]) Push(key K) {
	if !t.take(key) {
		t.news.push(key)
		return
	}
	if _, there := t.waiting[key]; there { // it was overtaken, and its place is still there
		t.overtaken--
	} else {
		t.later.push(key)
	}
	t.waiting[key] = true
}

// Touch implements workqueue.Queue: a key that is in the queue is added again.
func (t *turns[K]) Touch(key K) {
	if later := t.take(key); later || !t.waiting[key] {
		return
	}
	t.waiting[key] = false
	t.overtaken++
	t.news.push(key)
}

// Len implements workqueue.Queue.
func (t *turns[K]) Len() int { return t.news.length + t.later.length - t.overtaken }

// Pop implements workqueue.Queue. The queue is not empty.
func (t *turns[K]) Pop() K {
	defer t.sweep()
	if t.news.length > 0 {
		return t.news.pop()
	}
	for {
		key := t.later.pop()
		waits := t.waiting[key]
		delete(t.waiting, key)
		if waits {
			return key
		}
		t.overtaken--
	}
}

// sweep removes the places of overtaken keys once no other key waits.
func (t *turns[K]) sweep() {
	if t.overtaken > 0 && t.overtaken == t.later.length {
		t.later, t.overtaken = ring[K]{namespaceOf: t.later.namespaceOf}, 0
		clear(t.waiting)
	}
}

// ring holds the keys of each namespace in their order, and serves the namespaces in turn.
type ring[K comparable] struct {
	namespaceOf func(K) string
	namespaces  []string // with keys, the next one first
	keys        map[string][]K
	length      int
}

func (r *ring[K]) push(key K) {
	if r.keys == nil {
		r.keys = map[string][]K{}
	}
	namespace := r.namespaceOf(key)
	if len(r.keys[namespace]) == 0 {
		r.namespaces = append(r.namespaces, namespace)
	}
	r.keys[namespace] = append(r.keys[namespace], key)
	r.length++
}

func (r *ring[K]) pop() K {
	namespace := r.namespaces[0]
	r.namespaces = r.namespaces[1:]
	key, rest := r.keys[namespace][0], r.keys[namespace][1:]
	if len(rest) == 0 {
		delete(r.keys, namespace)
	} else {
		r.keys[namespace] = rest
		r.namespaces = append(r.namespaces, namespace)
	}
	r.length--
	return key
}
