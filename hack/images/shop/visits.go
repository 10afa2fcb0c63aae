// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"strings"
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
	Moved    map[string]uint64 `json:"moved"`
	Failed   uint64            `json:"failed"`
	Failures []string          `json:"failures"`
	// Slowest answer, in milliseconds.
	Slowest int64 `json:"slowestMilliseconds"`
}

// visitor orders from another shop at a fixed rate.
type visitor struct {
	config visitConfig

	mu    sync.Mutex
	seen  visits
	open  map[uint64]struct{} // numbers of the orders without an answer
	users []user
	next  int // of the users
}

// user orders again when its last order has ended: two orders at a time would meet two
// versions, and a visitor without a cookie would be given two.
type user struct {
	client *http.Client
	waits  bool
	last   string // version that answered last
}

// order is one of a user.
type order struct {
	number uint64
	user   int // index of visitor.users
}

func newVisitor(c visitConfig) (*visitor, error) {
	v := &visitor{
		config: c, open: map[uint64]struct{}{},
		seen: visits{Answered: map[string]uint64{}, Moved: map[string]uint64{}},
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 2 * time.Second}
	for range max(1, c.Users) {
		u := user{client: &http.Client{Transport: transport, Timeout: visitTimeout}}
		if c.Cookies {
			jar, err := cookiejar.New(nil)
			if err != nil {
				return nil, fmt.Errorf("making a cookie jar: %w", err)
			}
			u.client.Jar = jar
		}
		v.users = append(v.users, u)
	}
	return v, nil
}

// run orders until ctx is done, and then waits for the answers.
func (v *visitor) run(ctx context.Context) {
	var open sync.WaitGroup
	defer open.Wait()
	tick := time.NewTicker(time.Second / time.Duration(v.config.Rate))
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
		u.waits = v.config.Users > 0 // without users, each order is of another client
		return order{number, who}, true
	}
	return order{}, false
}

func (v *visitor) visit(ctx context.Context, o order) {
	began := time.Now()
	version, err := v.send(ctx, o.user)
	v.end(o, version, time.Since(began), err)
}

// send orders with a POST, which no client and no proxy repeats without an answer.
func (v *visitor) send(ctx context.Context, who int) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(v.config.URL, "/")+"/orders", strings.NewReader("a thing"))
	if err != nil {
		return "", err
	}
	if v.config.Users > 0 && !v.config.Cookies {
		request.Header.Set("X-User", fmt.Sprintf("user-%d", who))
	}
	v.config.header(request)
	response, err := v.users[who].client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %.200q", response.Status, body)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return "", fmt.Errorf("an answer that is none: %w", err)
	}
	return a.Version, nil
}

// end notes how an order ended.
func (v *visitor) end(o order, version string, took time.Duration, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	u := &v.users[o.user]
	u.waits = false
	delete(v.open, o.number)
	v.seen.Slowest = max(v.seen.Slowest, took.Milliseconds())
	if err != nil {
		v.fail(err)
		return
	}
	v.seen.Answered[version]++
	if v.config.Users > 0 && u.last != "" && u.last != version {
		v.seen.Moved[u.last+">"+version]++
	}
	u.last = version
}

// fail counts an order that failed. The caller holds the lock.
func (v *visitor) fail(err error) {
	v.seen.Failed++
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
	seen.Answered, seen.Moved = maps.Clone(seen.Answered), maps.Clone(seen.Moved)
	seen.Failures = append([]string{}, seen.Failures...)
	return seen
}
