// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// job is one event on its way to one channel.
type job struct {
	event    notify.Event
	id       string
	deadline time.Time
	progress progress
}

// memory is how many delivered ids a channel remembers.
const memory = 1024

// queue holds what waits, and knows what is under way or was told. It is not safe
// for concurrent use; the channel around it locks.
type queue struct {
	depth   int
	waiting []*job
	known   map[string]bool // waiting, under way, or told and still remembered
	told    []string        // the order in which to forget
}

func newQueue(depth int) *queue {
	return &queue{depth: depth, known: map[string]bool{}}
}

// push adds a job. It says whether the id is new, and which job had to go: when
// the queue is full the oldest that asks nobody to act, or else, when the new one
// is urgent, the oldest; else the new one itself.
func (q *queue) push(j *job) (isNew bool, dropped *job) {
	if q.known[j.id] {
		return false, nil
	}
	if len(q.waiting) >= q.depth {
		victim := slices.IndexFunc(q.waiting, func(w *job) bool { return !w.event.Type.Urgent() })
		if victim < 0 && !j.event.Type.Urgent() {
			return true, j
		}
		victim = max(victim, 0)
		dropped = q.waiting[victim]
		q.waiting = slices.Delete(q.waiting, victim, victim+1)
		delete(q.known, dropped.id)
	}
	q.known[j.id] = true
	q.waiting = append(q.waiting, j)
	return true, dropped
}

// pop takes the oldest, nil when nothing waits. Its id stays known.
func (q *queue) pop() *job {
	if len(q.waiting) == 0 {
		return nil
	}
	j := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	return j
}

// settle ends what pop began. What was told is remembered for a while; anything
// else may be tried again.
func (q *queue) settle(id string, told bool) {
	if !told {
		delete(q.known, id)
		return
	}
	q.told = append(q.told, id)
	if len(q.told) > memory {
		delete(q.known, q.told[0])
		q.told = slices.Delete(q.told, 0, 1)
	}
}

// clear empties the queue and gives what was in it.
func (q *queue) clear() []*job {
	dropped := q.waiting
	q.waiting = nil
	for _, j := range dropped {
		delete(q.known, j.id)
	}
	return dropped
}
