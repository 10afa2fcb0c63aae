// SPDX-License-Identifier: Apache-2.0

package routertest_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

// recorders give each release one, with certain capabilities.
type recorders struct {
	can traffic.Capabilities
	of  map[types.NamespacedName]*routertest.Recorder
}

func (r recorders) Router(release types.NamespacedName) traffic.Router {
	if r.of[release] == nil {
		r.of[release] = &routertest.Recorder{}
		r.of[release].Limit(r.can)
	}
	return r.of[release]
}

// capabilitySets are those of the routers that are built or planned, and the ends.
func capabilitySets() map[string]traffic.Capabilities {
	without := func(change func(*traffic.Capabilities)) traffic.Capabilities {
		c := traffic.FullCapabilities()
		change(&c)
		return c
	}
	return map[string]traffic.Capabilities{
		"all capabilities":  traffic.FullCapabilities(),
		"none but accepted": {Resolution: 1, Knowledge: traffic.Accepted},
		"weights to 999":    {Resolution: 10, Knowledge: traffic.Accepted, Outcomes: true},
		"no cookies of its own": without(func(c *traffic.Capabilities) {
			c.AnonymousVisitors = false
		}),
		"no visitors": without(func(c *traffic.Capabilities) {
			c.Sticky, c.AnonymousVisitors, c.RollbackWithoutAPIServer = false, false, false
		}),
		"headers alone": {HeaderMap: true, Override: true, Resolution: 1, Knowledge: traffic.Proven},
	}
}

func TestRoutersInMemoryConform(t *testing.T) {
	t.Run("the zero recorder", func(t *testing.T) {
		routertest.Conform(t, routertest.Maker{Capabilities: traffic.FullCapabilities(), Begin: func(*testing.T) routertest.Stand { return zeros{} }})
	})
	t.Run("the zero proxy", func(t *testing.T) {
		routertest.Conform(t, routertest.Maker{Capabilities: traffic.FullCapabilities(), Begin: func(*testing.T) routertest.Stand { return loaded{&routertest.Proxy{}} }})
	})
	for name, can := range capabilitySets() {
		t.Run("recorder with "+name, func(t *testing.T) {
			routertest.Conform(t, routertest.Maker{Capabilities: can, Begin: func(*testing.T) routertest.Stand {
				return recorders{can, map[types.NamespacedName]*routertest.Recorder{}}
			}})
		})
		t.Run("proxy with "+name, func(t *testing.T) {
			routertest.Conform(t, routertest.Maker{Capabilities: can, Begin: func(*testing.T) routertest.Stand { return routertest.NewProxy(can, false) }})
		})
		t.Run("round robin with "+name, func(t *testing.T) {
			routertest.Conform(t, routertest.Maker{Capabilities: can, RoundRobin: true, Begin: func(*testing.T) routertest.Stand { return routertest.NewProxy(can, true) }})
		})
	}
}

// zeros give each release a recorder as it is declared.
type zeros map[types.NamespacedName]*routertest.Recorder

func (z zeros) Router(release types.NamespacedName) traffic.Router {
	if z[release] == nil {
		z[release] = &routertest.Recorder{}
	}
	return z[release]
}

// loaded is a proxy with two clients.
type loaded struct{ *routertest.Proxy }

// Load implements routertest.Loader.
func (l loaded) Load(service types.NamespacedName) (stop func() (sent, lost int)) {
	var sent, lost atomic.Int64
	var clients sync.WaitGroup
	var first sync.WaitGroup
	end := make(chan struct{})
	for range 2 {
		first.Add(1)
		clients.Go(func() {
			asked := sync.OnceFunc(first.Done)
			for {
				select {
				case <-end:
					return
				default:
				}
				if answer, err := l.Ask(routertest.Request{Service: service}); err != nil || !answer.Divided {
					lost.Add(1)
				}
				sent.Add(1)
				asked()
			}
		})
	}
	first.Wait()
	return func() (int, int) {
		close(end)
		clients.Wait()
		return int(sent.Load()), int(lost.Load())
	}
}
