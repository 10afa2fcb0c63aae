// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// Acks wait for proxies to acknowledge one resource.
type Acks struct{ now atomic.Pointer[expectation] }

type expectation struct {
	resource *ads.Resource
	hash     string // its version as go-control-plane gives it
	began    time.Time
	expect   int
	done     chan struct{}

	mu           sync.Mutex
	acknowledged map[string]time.Duration
}

// Begin waits for so many proxies to acknowledge a resource, from now on.
func (a *Acks) Begin(r *ads.Resource, hash string, expect int) {
	e := &expectation{resource: r, hash: hash, expect: expect, done: make(chan struct{}), acknowledged: make(map[string]time.Duration, expect), began: time.Now()}
	a.now.Store(e)
}

// Await says after what time each proxy has acknowledged it, when all have or ctx ends.
func (a *Acks) Await(ctx context.Context) []time.Duration {
	e := a.now.Load()
	if e == nil {
		return nil
	}
	if e.expect > 0 {
		select {
		case <-e.done:
		case <-ctx.Done():
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	took := make([]time.Duration, 0, len(e.acknowledged))
	for _, d := range e.acknowledged {
		took = append(took, d)
	}
	return took
}

// acked notes that a proxy has acknowledged what is waited for; again is not counted.
func (e *expectation) acked(proxy string) {
	took := time.Since(e.began)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, before := e.acknowledged[proxy]; before {
		return
	}
	e.acknowledged[proxy] = took
	if len(e.acknowledged) == e.expect {
		close(e.done)
	}
}
