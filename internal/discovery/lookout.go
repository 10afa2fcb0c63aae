// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// again is when a look is repeated that was not believed.
const again = time.Second

// lookout looks when something has changed, at the pace that [Pace] says. What is decided has a lane
// of its own: a look at it takes nothing along that may wait.
type lookout struct {
	clock clock.WithTicker
	wake  chan struct{}

	mu            sync.Mutex
	decided, rest lane
}

// lane has what is to be looked at together.
type lane struct {
	pace  Pace
	dirty dirty
}

func newLookout(c clock.WithTicker) *lookout { return &lookout{clock: c, wake: make(chan struct{}, 1)} }

// changed notes a change, and waits for nobody.
func (l *lookout) changed(haste Haste, d dirty) {
	l.mu.Lock()
	to := &l.rest
	if haste == AtOnce {
		to = &l.decided
	}
	to.pace, to.dirty = to.pace.Changed(l.clock.Now(), haste), to.dirty.with(d)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

// due takes the changes of a lane if it is time; otherwise it says when that is.
func (l *lookout) due(now time.Time) (at time.Time, d dirty, look bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range []*lane{&l.decided, &l.rest} {
		due := of.pace.Due()
		if due.IsZero() {
			continue
		}
		if !now.Before(due) {
			d = of.dirty
			*of = lane{}
			return time.Time{}, d, true
		}
		at = sooner(at, due)
	}
	return at, d, false
}

// run calls look until ctx ends; look says whether it was believed.
func (l *lookout) run(ctx context.Context, look func(dirty) bool) {
	timer := l.clock.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		at, d, now := l.due(l.clock.Now())
		if now {
			if !look(d) {
				l.doubted(d)
			}
			continue
		}
		if !at.IsZero() {
			timer.Reset(at.Sub(l.clock.Now()))
		}
		select {
		case <-l.wake:
		case <-timer.C():
		case <-ctx.Done():
		}
	}
}

// doubted has what was not believed looked at again after a while, or before if something changes.
func (l *lookout) doubted(d dirty) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest.dirty = l.rest.dirty.with(d)
	if at := l.clock.Now().Add(again); l.rest.pace.first.IsZero() {
		l.rest.pace = Pace{first: at, last: at.Add(-quiet)}
	}
}
