// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// Relay carries connections until the test ends.
type Relay struct {
	// Address takes the connections, as host:port.
	Address string

	mu      sync.Mutex
	targets []string
	open    map[net.Conn]bool
}

// Start starts a relay to these targets, as [Relay.Lead] has it.
func Start(tb testing.TB, targets ...string) *Relay {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // as a server would
	if err != nil {
		tb.Fatal(err)
	}
	r := &Relay{Address: l.Addr().String(), targets: targets, open: map[net.Conn]bool{}}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { r.carry(c) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close() // no connection comes any more
		r.Lead()
		r.Cut()
		connections.Wait()
	})
	return r
}

// Lead carries each connection to come to the first of the targets that takes it, and closes the
// connection if there is none. Connections that are open stay.
func (r *Relay) Lead(targets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.targets = slices.Clone(targets)
}

// Cut breaks all connections that are open.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		_ = c.Close() // it breaks, as it would
	}
}

// reach connects to a target, and keeps both connections for [Relay.Cut].
func (r *Relay) reach(from net.Conn) net.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, target := range r.targets {
		to, err := net.Dial("tcp", target) //nolint:noctx // on this machine
		if err == nil {
			r.open[from], r.open[to] = true, true
			return to
		}
	}
	return nil
}

func (r *Relay) carry(from net.Conn) {
	defer func() { _ = from.Close() }() // it has broken
	to := r.reach(from)
	if to == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(to, from) // until it breaks
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to) // until it breaks
	_, _ = from.Close(), to.Close()
	<-done
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, from)
	delete(r.open, to)
}
