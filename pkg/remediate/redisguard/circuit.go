// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"sync"
	"time"
)

// circuit leaves a Redis alone that does not answer: asking it at every step would
// cost the whole budget of a call each time. After some failures in a row nobody
// asks for a while; then one call tries, and the others wait for how it ends.
type circuit struct {
	failures int           // in a row, until it rests
	rest     time.Duration // for how long

	mu      sync.Mutex
	row     int
	until   time.Time
	probing bool
}

// outcome of a call, as far as the circuit is concerned.
type outcome int

const (
	// worked: the server answered, whatever it said.
	worked outcome = iota
	// failed: it did not, or with what cannot be understood as an answer.
	failed
	// abandoned: the caller went away, which tells nothing.
	abandoned
)

// enter says whether a call may be made; it is followed by leave.
func (c *circuit) enter(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.row < c.failures {
		return true
	}
	if c.probing || now.Before(c.until) {
		return false
	}
	c.probing = true
	return true
}

// leave tells how a call ended. One from before the rest that ends late counts as
// well: an answer is an answer.
func (c *circuit) leave(how outcome, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
	switch how {
	case worked:
		c.row = 0
	case failed:
		if c.row++; c.row >= c.failures {
			c.row, c.until = c.failures, now.Add(c.rest)
		}
	case abandoned:
	}
}

// resting says that nobody asks at present.
func (c *circuit) resting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.row >= c.failures
}
