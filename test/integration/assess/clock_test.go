// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/assessor"
)

// laterClock is the real clock, put forward by hand: it shows what ten minutes
// do without waiting for them. Timers run in real time.
type laterClock struct {
	clock.RealClock
	ahead atomic.Int64
}

// Now implements clock.PassiveClock.
func (c *laterClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Since implements clock.PassiveClock.
func (c *laterClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *laterClock) forward(d time.Duration) { c.ahead.Add(int64(d)) }

func withClock(c clock.WithTicker) option {
	return func(s *assessor.Setup) { s.Clock = c }
}
