// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// oldWatches is how long the watches of a replica may hear nothing. Whoever leads renews a lease
// every two seconds, which all replicas watch; another leader takes over within 17 s.
const oldWatches = 30 * time.Second

// trusted is how long that counts which the leader has said.
const trusted = 6 * time.Second

// Watches know how long ago this replica heard from the API server, and how long ago the leader
// did. They may be used by many at once.
type Watches struct {
	clock clock.PassiveClock
	limit time.Duration // for how old they may be

	mu sync.Mutex
	// heard is when something came by a watch, zero before the first time.
	heard time.Time
	// leader is how old the watches of the leader were at the time told.
	leader time.Duration
	told   time.Time
}

// NewWatches have heard nothing. They are old after a time; 0 is that of production.
func NewWatches(c clock.PassiveClock, old time.Duration) *Watches {
	return &Watches{clock: c, limit: cmp.Or(old, oldWatches)}
}

// hear notes that something came by a watch.
func (w *Watches) hear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = w.clock.Now()
}

// age is how long ago something came by a watch; 0 before the first time.
func (w *Watches) age() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.heard.IsZero() {
		return 0
	}
	return w.clock.Since(w.heard)
}

// tell notes what the leader says of its own watches.
func (w *Watches) tell(age time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leader, w.told = age, w.clock.Now()
}

// old says that newer state than this replica has may be at proxies. That is said soon, since it
// costs little: three renewals of the lease have not come.
func (w *Watches) old() bool { return w.age() > w.limit/5 }

// register the metric of these.
func (w *Watches) register(registry prometheus.Registerer) error {
	err := registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plumbline_xds_watches_age_seconds",
		Help: "How long ago this replica received an event by a watch. Above 6, a replica does not take acknowledgments back; above 30, it is not ready while the leader receives events.",
	}, func() float64 { return w.age().Seconds() }))
	if err != nil {
		return fmt.Errorf("registering the metric of watches: %w", err)
	}
	return nil
}

// Check says why this replica must not get proxies: its watches are old, and those of the leader
// are not. While the API server is away all replicas are as old as each other, and serve.
func (w *Watches) Check() error {
	age := w.age()
	w.mu.Lock()
	defer w.mu.Unlock()
	if age <= w.limit || w.told.IsZero() || w.clock.Since(w.told) > trusted || w.leader > w.limit/3 {
		return nil
	}
	return fmt.Errorf("the watches have received no event for %s, and those of the leader have %s ago", age.Round(time.Second), w.leader.Round(time.Second))
}
