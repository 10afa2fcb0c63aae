// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/asker"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

const (
	// returnsVariable names the environment variable that says how many returns of proxies are
	// measured. If it is set, the test demands [returnsWithin] of them.
	returnsVariable = "PLUMBLINE_RETURNS"
	usualReturns    = 10
	// returnsWithin is how long 99 of 100 proxies may take.
	returnsWithin = 3 * time.Second
	// returningProxies come back each time that the server does.
	returningProxies = 5
	// shortAway and longAway bound for how long the server is away. Proxies wait for at most two
	// seconds between two attempts, which they reach after the third.
	shortAway, longAway = 3 * time.Second, 15 * time.Second
)

// A discovery server ends in one of two ways, is away for a time, and is ready again. A proxy is back
// when it routes to an endpoint that has changed meanwhile, which is when it has acknowledged that.
func TestAProxyIsBackSoonAfterTheServerIsReady(t *testing.T) {
	rotation.Share(t, 3)
	t.Parallel() // it has a cluster of its own
	returns, away := usualReturns, shortAway
	text := os.Getenv(returnsVariable)
	if text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			t.Fatalf("reading %s: %v", returnsVariable, err)
		}
		returns, away = int(n), longAway
	}
	b := newReturning(t)
	random := seed.Random(t)
	for range (returns + returningProxies - 1) / returningProxies {
		b.round(random, away)
	}
	p50, p99 := quantile.Of(b.took, 50), quantile.Of(b.took, 99)
	t.Logf("%d returns after up to %s: p50 %s, p99 %s, the slowest %s", len(b.took), away, p50, p99, quantile.Of(b.took, 100))
	if text != "" && p99 > returnsWithin {
		t.Errorf("99 of 100 proxies are back after %s, want %s", p99, returnsWithin)
	}
}

// returning is a Service that moves while the server is away, and proxies that come back.
type returning struct {
	*shop
	server *replica
	move   func(backend string)
	routed []*arrivals
	rounds int
	took   []time.Duration
}

// arrivals are when a proxy has first answered with each text.
type arrivals struct {
	mu    sync.Mutex
	first map[string]time.Time
}

func (a *arrivals) hear(answer asker.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first[answer.Text].IsZero() {
		a.first[answer.Text] = answer.At
	}
}

// of a text, or an error if there was none.
func (a *arrivals) of(text string) (time.Time, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at := a.first[text]; !at.IsZero() {
		return at, nil
	}
	return time.Time{}, fmt.Errorf("no answer is %q", text)
}

func newReturning(t *testing.T) *returning {
	t.Helper()
	c := ownCluster(t, manifest)
	b := &returning{shop: c.shop(t, enabled), server: c.start(t, "one")}
	slice := b.service("web", backend.Start(t, "first"))
	b.move = func(backend string) { b.shop.move(slice, backend) }
	b.awaitCopy()
	for i := range returningProxies {
		p := b.sidecar(b.server, fmt.Sprint("front-", i), b.copied().Data["ca.crt"], []string{"web"})
		backend.Answers(t, patience, p.front["web"], "200 first")
		routed := &arrivals{first: map[string]time.Time{}}
		asker.Start(t, p.front["web"], 10*time.Millisecond, routed.hear)
		b.routed = append(b.routed, routed)
	}
	return b
}

// round has the server away for at most so long, and notes how long each proxy takes to be back.
func (b *returning) round(random *rand.Rand, away time.Duration) {
	b.Helper()
	end := b.server.Kill
	if random.IntN(2) == 0 {
		end = b.server.Stop
	}
	b.must(end())
	b.rounds++
	name := fmt.Sprint("round-", b.rounds)
	b.move(backend.Start(b.T, name))
	<-time.After(time.Duration(random.Int64N(int64(away))))
	b.server = b.c.launch(b.T, b.server.address, "one")
	ready := b.readyAt()
	for i, routed := range b.routed {
		poll.Until(b.T, patience, fmt.Sprintf("proxy %d is back", i), func() error {
			at, err := routed.of("200 " + name)
			if err == nil {
				b.took = append(b.took, max(0, at.Sub(ready)))
			}
			return err
		})
	}
}

// readyAt waits until the server says that it is ready, and returns when it last was not.
func (b *returning) readyAt() (before time.Time) {
	b.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	var last string
	for begin := time.Now(); time.Since(begin) < patience; <-ticks.C {
		asked := time.Now()
		code, body, err := b.server.Get(b.Context(), b.server.Health, "/readyz")
		if err == nil && code == http.StatusOK {
			return before
		}
		before, last = asked, fmt.Sprint(code, " ", body, " ", err)
	}
	b.Fatalf("waited %s until the server is ready; last seen: %s; it said\n%s", patience, last, b.server.Said())
	return before
}
