// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Bounds of events. What ten thousand objects do at once is told by their
// Baselines, by the guard's MassDrift and by the figures; ten thousand events
// would take the API server from exactly those writes, and the recorder keeps
// each of them in memory for six minutes (client-go, tools/events, finishTime).
// A namespace has a share of its own, so that a noisy one does not silence the
// others, and so have the types, so that a busy CI does not silence drift.
const (
	eventsAtOnce, eventsPerSecond                   rate.Limit = 1000, 10
	namespaceEventsAtOnce, namespaceEventsPerSecond rate.Limit = 200, 2
	// maxShares bounds the namespaces whose shares are remembered, by type.
	maxShares = 1024
)

// eventBudget says whether an event may be told now. Its zero value is not ready
// for use; see newEventBudget.
type eventBudget struct {
	mu     sync.Mutex
	all    map[specguard.EventType]*rate.Limiter
	shares map[share]*rate.Limiter
}

type share struct {
	namespace string
	kind      specguard.EventType
}

func newEventBudget() *eventBudget {
	return &eventBudget{all: map[specguard.EventType]*rate.Limiter{}, shares: map[share]*rate.Limiter{}}
}

// spend takes one event of the namespace's share, and of what all have together.
func (b *eventBudget) spend(namespace string, kind specguard.EventType, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := share{namespace, kind}
	if b.shares[id] == nil && len(b.shares) >= maxShares {
		b.forgetUnspent(now)
	}
	own := limiter(b.shares, id, namespaceEventsPerSecond, namespaceEventsAtOnce)
	// The share first: who has none left takes nothing from the others.
	return own.AllowN(now, 1) && limiter(b.all, kind, eventsPerSecond, eventsAtOnce).AllowN(now, 1)
}

// forgetUnspent makes room. A share that is whole again is the same as a new one;
// if none is, all begin anew, and what all have together is still the bound.
func (b *eventBudget) forgetUnspent(now time.Time) {
	for id, l := range b.shares {
		if l.TokensAt(now) >= float64(namespaceEventsAtOnce) {
			delete(b.shares, id)
		}
	}
	if len(b.shares) >= maxShares {
		clear(b.shares)
	}
}

func limiter[K comparable](of map[K]*rate.Limiter, id K, perSecond, atOnce rate.Limit) *rate.Limiter {
	l, ok := of[id]
	if !ok {
		l = rate.NewLimiter(perSecond, int(atOnce))
		of[id] = l
	}
	return l
}
