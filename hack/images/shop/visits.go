// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

const (
	// visitTimeout is long, since a node that is short of processors loses no order. On a
	// machine that was busy the slowest order took 9 s.
	visitTimeout = 30 * time.Second
	// maxOpen bounds the orders without an answer; more count as failed.
	maxOpen = 2000
	// maxFailures are told in full; of more there is only the number.
	maxFailures = 5
)

// visits are what became of the orders until now.
type visits struct {
	Started uint64 `json:"started"`
	// Settled is the number of the oldest order without an answer: all orders before it
	// have ended. Orders are numbered from 0.
	Settled uint64 `json:"settled"`
	// Answered counts answers by the version that gave them.
	Answered map[string]uint64 `json:"answered"`
	// Moved counts users who were answered by another version than before: "v1>v2".
	Moved map[string]uint64 `json:"moved"`
	// LastSent is when the last order began that each version answered.
	LastSent map[string]time.Time `json:"lastSent"`
	Failed   uint64               `json:"failed"`
	// Spoiled are those that failed by the faults of the version that answered; Failed counts them too.
	Spoiled  uint64   `json:"spoiled,omitempty"`
	Failures []string `json:"failures"`
	// Slowest answer, in milliseconds.
	Slowest int64 `json:"slowestMilliseconds"`
}

// visitor orders from another shop at a fixed rate.
type visitor struct {
	rate int
	// known is whether users are told apart.
	known bool
	// send an order of a user, by its index, and return the version that answers.
	send func(ctx context.Context, who int) (string, error)

	mu    sync.Mutex
	seen  visits
	open  map[uint64]struct{} // numbers of the orders without an answer
	users []user
	next  int // of the users
}

// user orders again when its last order has ended: two orders at a time would meet two
// versions, and a visitor without a cookie would be given two.
type user struct {
	waits bool
	last  string // version that answered last
}

// order is one of a user.
type order struct {
	number uint64
	user   int // index of visitor.users
}

// newVisitor of so many users who are told apart; 0 is for orders of which each is another client's.
func newVisitor(rate, users int, send func(ctx context.Context, who int) (string, error)) *visitor {
	return &visitor{
		rate: rate, known: users > 0, send: send, users: make([]user, max(1, users)), open: map[uint64]struct{}{},
		seen: visits{Answered: map[string]uint64{}, Moved: map[string]uint64{}, LastSent: map[string]time.Time{}},
	}
}

// run orders until ctx is done, and then waits for the answers.
func (v *visitor) run(ctx context.Context) {
	var open sync.WaitGroup
	defer open.Wait()
	tick := time.NewTicker(time.Second / time.Duration(v.rate))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if o, ok := v.begin(); ok {
			open.Go(func() { v.visit(context.WithoutCancel(ctx), o) })
		}
	}
}

// begin numbers an order of the next user that may order. It returns false if all users
// wait for an answer, or if so many orders are open that this one fails at once.
func (v *visitor) begin() (order, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for range v.users {
		who := v.next
		v.next = (v.next + 1) % len(v.users)
		u := &v.users[who]
		if u.waits {
			continue
		}
		number := v.seen.Started
		v.seen.Started++
		if len(v.open) >= maxOpen {
			v.fail(fmt.Errorf("%d orders have no answer", maxOpen))
			return order{}, false
		}
		v.open[number] = struct{}{}
		u.waits = v.known
		return order{number, who}, true
	}
	return order{}, false
}

func (v *visitor) visit(ctx context.Context, o order) {
	began := time.Now()
	version, err := v.send(ctx, o.user)
	v.end(o, version, began, err)
}

// end notes how an order ended.
func (v *visitor) end(o order, version string, began time.Time, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	u := &v.users[o.user]
	u.waits = false
	delete(v.open, o.number)
	v.seen.Slowest = max(v.seen.Slowest, time.Since(began).Milliseconds())
	if err != nil {
		v.fail(err)
		return
	}
	v.seen.Answered[version]++
	if began.After(v.seen.LastSent[version]) {
		v.seen.LastSent[version] = began
	}
	if v.known && u.last != "" && u.last != version {
		v.seen.Moved[u.last+">"+version]++
	}
	u.last = version
}

// fail counts an order that failed. The caller holds the lock.
func (v *visitor) fail(err error) {
	v.seen.Failed++
	if errors.Is(err, errSpoiled) {
		v.seen.Spoiled++
		return
	}
	if len(v.seen.Failures) < maxFailures {
		v.seen.Failures = append(v.seen.Failures, time.Now().UTC().Format(time.RFC3339Nano)+" "+err.Error())
	}
}

// report is a copy of what was seen.
func (v *visitor) report() visits {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := v.seen
	seen.Settled = seen.Started
	for number := range v.open {
		seen.Settled = min(seen.Settled, number)
	}
	seen.Answered, seen.Moved, seen.LastSent = maps.Clone(seen.Answered), maps.Clone(seen.Moved), maps.Clone(seen.LastSent)
	seen.Failures = append([]string{}, seen.Failures...)
	return seen
}
