// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/plumbline-dev/plumbline/internal/kube"
)

// fairQueue is a work queue that hands out the objects of the namespaces in turn, one of
// each (round robin). So a tenant who writes many objects delays an object of another
// tenant by one object at a time. Objects that were added with a negative priority come
// after all others, in turns of their own.
type fairQueue struct {
	workqueue.TypedRateLimitingInterface[kube.Key]
	turns *turns
}

var _ priorityqueue.PriorityQueue[kube.Key] = (*fairQueue)(nil)

func newFairQueue(name string, limiter workqueue.TypedRateLimiter[kube.Key]) *fairQueue {
	t := &turns{waiting: map[kube.Key]bool{}, asked: map[kube.Key]bool{}}
	inner := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[kube.Key]{Name: name, Queue: t})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[kube.Key]{Queue: inner})
	return &fairQueue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[kube.Key]{DelayingQueue: delaying}),
		turns: t,
	}
}

// Add adds an object that has news of its own.
func (q *fairQueue) Add(key kube.Key) {
	q.turns.ask(key, false)
	q.TypedRateLimitingInterface.Add(key)
}

// AddWithOpts adds objects. A priority counts for what is added at once.
func (q *fairQueue) AddWithOpts(o priorityqueue.AddOpts, keys ...kube.Key) {
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
func (q *fairQueue) GetWithPriority() (key kube.Key, priority int, shutdown bool) {
	key, shutdown = q.Get()
	return key, 0, shutdown
}

// turns is the storage of a fairQueue, which calls Touch, Push, Len and Pop one at a time.
type turns struct {
	news, later ring
	// waiting are the keys in later; false once news of the object overtook it.
	waiting map[kube.Key]bool
	// overtaken counts the keys that are false in waiting.
	overtaken int

	mu sync.Mutex
	// asked are the keys that are being added, and whether only for later.
	asked map[kube.Key]bool
}

// ask notes how a key is about to be added. Later never takes news back.
func (t *turns) ask(key kube.Key, later bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, asked := t.asked[key]
	t.asked[key] = later && (!asked || before)
}

// take tells whether a key is added only for later.
func (t *turns) take(key kube.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	later := t.asked[key]
	delete(t.asked, key)
	return later
}

// Push implements workqueue.Queue.
func (t *turns) Push(key kube.Key) {
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
func (t *turns) Touch(key kube.Key) {
	if later := t.take(key); later || !t.waiting[key] {
		return
	}
	t.waiting[key] = false
	t.overtaken++
	t.news.push(key)
}

// Len implements workqueue.Queue.
func (t *turns) Len() int { return t.news.length + t.later.length - t.overtaken }

// Pop implements workqueue.Queue. The queue is not empty.
func (t *turns) Pop() kube.Key {
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
func (t *turns) sweep() {
	if t.overtaken > 0 && t.overtaken == t.later.length {
		t.later, t.overtaken = ring{}, 0
		clear(t.waiting)
	}
}

// ring holds the keys of each namespace in their order, and serves the namespaces in turn.
type ring struct {
	namespaces []string // with keys, the next one first
	keys       map[string][]kube.Key
	length     int
}

func (r *ring) push(key kube.Key) {
	if r.keys == nil {
		r.keys = map[string][]kube.Key{}
	}
	if len(r.keys[key.Namespace]) == 0 {
		r.namespaces = append(r.namespaces, key.Namespace)
	}
	r.keys[key.Namespace] = append(r.keys[key.Namespace], key)
	r.length++
}

func (r *ring) pop() kube.Key {
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
