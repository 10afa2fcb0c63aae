// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/wire"
)

// Acknowledgments of one version of a resource, as the proxies know of them.
type Acknowledgments struct {
	fleet        *Fleet
	name, prefix string
	expect       int
	began        time.Time
	done         chan struct{}

	mu   sync.Mutex
	took map[int]time.Duration
}

// Watch waits from now on for so many proxies to acknowledge a resource, in a version that begins with
// a prefix.
func (f *Fleet) Watch(name, prefix string, expect int) *Acknowledgments {
	c := &Acknowledgments{fleet: f, name: name, prefix: prefix, expect: expect, began: time.Now(), done: make(chan struct{}), took: map[int]time.Duration{}}
	f.watched.Store(c)
	return c
}

// Await says after what time each proxy has acknowledged, when all have or ctx ends.
func (c *Acknowledgments) Await(ctx context.Context) (took []time.Duration) {
	select {
	case <-c.done:
		c.fleet.watched.CompareAndSwap(c, nil)
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.took {
		took = append(took, d)
	}
	return took
}

// note that a proxy has answered a response.
func (c *Acknowledgments) note(proxy int, r *wire.Response) {
	if c == nil {
		return
	}
	for _, resource := range r.Resources {
		if resource.Name != c.name || !strings.HasPrefix(resource.Version, c.prefix) {
			continue
		}
		c.mu.Lock()
		if _, before := c.took[proxy]; !before {
			if c.took[proxy] = time.Since(c.began); len(c.took) == c.expect {
				close(c.done)
			}
		}
		c.mu.Unlock()
	}
}
