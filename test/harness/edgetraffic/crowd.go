// SPDX-License-Identifier: Apache-2.0

package edgetraffic

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// patience bounds the wait for answers.
const patience = 30 * time.Second

// Rule refuses a way of a visitor from the variation of one answer to that of the next answer. The variation before
// the first answer is "".
type Rule func(before, now string) error

// AnyWay refuses no way.
func AnyWay(_, _ string) error { return nil }

// OnlyToTheCanary refuses a way back from the canary.
func OnlyToTheCanary(before, now string) error {
	if before == "canary" && now != before {
		return fmt.Errorf("the visitor was moved back to %q", now)
	}
	return nil
}

// Crowd are visitors user-0, user-1 and so on in the header x-user, each with a connection of its own, that post
// without a pause.
type Crowd struct {
	tb   testing.TB
	rule Rule
	all  sync.WaitGroup
	stop chan struct{}
	end  sync.Once

	mu     sync.Mutex
	served map[string]int
	errs   []error
	opened int
}

// GatherCrowd has visitors post to an address until EndVisits is called or the test ends.
func GatherCrowd(tb testing.TB, address string, visitors int, rule Rule) *Crowd {
	tb.Helper()
	c := &Crowd{tb: tb, rule: rule, stop: make(chan struct{}), served: map[string]int{}}
	for i := range visitors {
		c.all.Go(func() { c.visit(address, fmt.Sprint("user-", i)) })
	}
	tb.Cleanup(c.EndVisits)
	return c
}

func (c *Crowd) visit(address, user string) {
	client, last := NewClient(c.tb), ""
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.opened += client.Opened()
	}()
	for {
		select {
		case <-c.stop:
			return
		default:
		}
		got, err := client.Ask(c.tb, http.MethodPost, address, "x-user", user)
		if err == nil && got.Status != http.StatusOK {
			err = fmt.Errorf("answered %d", got.Status)
		}
		if err == nil {
			err = c.rule(last, got.Variation)
		}
		last = got.Variation
		c.note(user, got.Variation, err)
	}
}

func (c *Crowd) note(user, variation string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served[variation]++
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", user, err))
	}
}

// EndVisits waits until each visitor has the last answer.
func (c *Crowd) EndVisits() {
	c.end.Do(func() { close(c.stop) })
	c.all.Wait()
}

// Served are the answers of each variation so far.
func (c *Crowd) Served() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	served := maps.Clone(c.served)
	delete(served, "")
	return served
}

// Answered is the sum of the answers of all variations so far.
func (c *Crowd) Answered() (sum int) {
	for _, n := range c.Served() {
		sum += n
	}
	return sum
}

// Opened is how many connections the visitors have opened; call it after EndVisits.
func (c *Crowd) Opened() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}

// AwaitMore waits until so many requests more were answered.
func (c *Crowd) AwaitMore(n int) {
	c.tb.Helper()
	before := c.Answered()
	poll.Until(c.tb, patience, "requests are answered", func() error {
		if now := c.Answered(); now < before+n {
			return fmt.Errorf("%d of %d are", now-before, n)
		}
		return nil
	})
}

// LoseNone ends the crowd, and fails the test if a request was lost or a visitor went a way against the rule.
func (c *Crowd) LoseNone() {
	c.tb.Helper()
	c.EndVisits()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.errs) > 0 {
		c.tb.Errorf("%d requests beside answers %v: %v", len(c.errs), c.served, errors.Join(c.errs...))
	}
}
