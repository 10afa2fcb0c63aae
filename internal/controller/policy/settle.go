// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"sync"
	"time"
)

const (
	// settleTime is how long changes of drift are collected at most before a policy is looked
	// at: what drifts together is to be in one plan, worst first, and a mass drift is to be
	// seen as one. It is a part of what a correction takes.
	settleTime = 100 * time.Millisecond
	// quietTime without a change ends that earlier. A writer that changes several objects
	// one after the other needs less for each.
	quietTime = 25 * time.Millisecond
)

// settling collects changes that come together. Its zero value is ready for use.
type settling struct {
	mu    sync.Mutex
	timer *time.Timer
	first time.Time
}

// note has act called once no change was noted for quietTime, and at the latest settleTime
// after the first change of those that act was not called for.
func (s *settling) note(act func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.timer == nil || !s.timer.Stop() {
		s.first = now
	}
	s.timer = time.AfterFunc(min(quietTime, s.first.Add(settleTime).Sub(now)), act)
}
