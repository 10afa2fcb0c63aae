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
	// visitTimeout is long, since a node that is short of processors loses no order.
	visitTimeout = time.Minute
	// maxOpen bounds the orders without an answer; more count as failed.
	maxOpen = 2000
	// maxFailures are told in full; of more there is only the number.
	maxFailures = 5
)

// visits are what became of the orders until now.
type visits struct {
	Started uint64 `json:"started"`
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
	open   chan struct{}

	mu    sync.Mutex
	seen  visits
	users []user
}

// user is one who orders.
type user struct {
	client *http.Client
	last   string // version that answered last
}

func newVisitor(c visitConfig) (*visitor, error) {
	v := &visitor{
		config: c, open: make(chan struct{}, maxOpen),
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
	for next := 0; ; next++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		who := next % len(v.users)
		select {
		case v.open <- struct{}{}:
			open.Go(func() {
				defer func() { <-v.open }()
				v.visit(context.WithoutCancel(ctx), who)
			})
		default:
			v.note(who, "", 0, fmt.Errorf("%d orders have no answer", maxOpen))
		}
	}
}

func (v *visitor) visit(ctx context.Context, who int) {
	began := time.Now()
	version, err := v.order(ctx, who)
	v.note(who, version, time.Since(began), err)
}

// order is a POST, which nobody repeats who does not get an answer.
func (v *visitor) order(ctx context.Context, who int) (string, error) {
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

func (v *visitor) note(who int, version string, took time.Duration, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen.Started++
	v.seen.Slowest = max(v.seen.Slowest, took.Milliseconds())
	if err != nil {
		v.seen.Failed++
		if len(v.seen.Failures) < maxFailures {
			v.seen.Failures = append(v.seen.Failures, time.Now().UTC().Format(time.RFC3339Nano)+" "+err.Error())
		}
		return
	}
	v.seen.Answered[version]++
	u := &v.users[who]
	if v.config.Users > 0 && u.last != "" && u.last != version {
		v.seen.Moved[u.last+">"+version]++
	}
	u.last = version
}

// report is a copy of what was seen.
func (v *visitor) report() visits {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := v.seen
	seen.Answered, seen.Moved = maps.Clone(seen.Answered), maps.Clone(seen.Moved)
	seen.Failures = append([]string{}, seen.Failures...)
	return seen
}
