// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// again is when a look is repeated that was not believed.
const again = time.Second

// lookout looks when something has changed, at the pace that [Pace] says.
type lookout struct {
	clock clock.WithTicker
	wake  chan struct{}

	mu   sync.Mutex
	pace Pace
}

func newLookout(c clock.WithTicker) *lookout { return &lookout{clock: c, wake: make(chan struct{}, 1)} }

// changed notes a change, and waits for nobody.
func (l *lookout) changed(haste Haste) {
	l.mu.Lock()
	l.pace = l.pace.Changed(l.clock.Now(), haste)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

// due takes the changes if it is time; otherwise it says when that is.
func (l *lookout) due(now time.Time) (at time.Time, look bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at = l.pace.Due()
	if at.IsZero() || now.Before(at) {
		return at, false
	}
	l.pace = Pace{}
	return time.Time{}, true
}

// run calls look until ctx ends; look says whether it was believed.
func (l *lookout) run(ctx context.Context, look func() bool) {
	timer := l.clock.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		at, now := l.due(l.clock.Now())
		if now && !look() {
			at = l.clock.Now().Add(again)
			l.doubted(at)
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

// doubted has the next look at a certain time, or before if something changes.
func (l *lookout) doubted(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pace.first.IsZero() {
		l.pace = Pace{first: at, last: at.Add(-quiet)}
	}
}
