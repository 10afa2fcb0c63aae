// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Fault says what happens to connections and bytes. The zero value passes
// everything on.
type Fault struct {
	// Refuse resets new connections at once.
	Refuse bool
	// Delay is how long each piece of data is on its way, in both directions;
	// pieces overtake neither each other nor the end of the connection.
	Delay time.Duration
	// Hold stops all data on its way until it ends; none is lost. This is what a
	// network that drops packets for a while looks like: TCP sends them again.
	// New connections are accepted, and silent.
	Hold bool
	// LoseAnswers throws away what the server sends. A connection that lost
	// something is cut when the fault changes, since it could only go on in the
	// middle of an answer.
	LoseAnswers bool
	// CutAtAnswer cuts a connection when its server begins to answer: the request
	// was carried out, and the client cannot know.
	CutAtAnswer bool
}

// Proxy is the way to one server. Its methods may be called from any goroutine.
type Proxy struct {
	listener net.Listener
	done     chan struct{}
	wg       sync.WaitGroup

	mu      sync.Mutex
	network string // of the server
	address string
	fault   Fault
	changed chan struct{} // closed when fault changes
	links   map[*link]struct{}
	total   int
}

// Start listens on a free port of loopback for connections to a server, which
// net.Dial reaches by network and address. The caller closes the proxy.
func Start(network, address string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a fault proxy: %w", err)
	}
	p := &Proxy{
		listener: l, network: network, address: address,
		done: make(chan struct{}), changed: make(chan struct{}), links: map[*link]struct{}{},
	}
	p.wg.Go(p.accept)
	return p, nil
}

// Address is host:port of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Set changes what happens from now on; the zero Fault heals the way. Data that
// is on its way keeps the delay with which it set out.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	close(p.changed)
	p.changed = make(chan struct{})
	for l := range p.links {
		if l.lost.Load() && !f.LoseAnswers {
			l.reset()
		}
	}
}

// Redirect leads new connections to another server; those that are open stay
// with theirs.
func (p *Proxy) Redirect(network, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.network, p.address = network, address
}

// Cut resets the connections that are open, on both sides, and says how many.
func (p *Proxy) Cut() int { return p.each((*link).reset) }

// HalfOpen ends the connections that are open on the server's side alone; the
// client is not told, and never will be by this connection.
func (p *Proxy) HalfOpen() int { return p.each((*link).halfOpen) }

// Abandon lets the connections that are open stay so, and carries nothing over
// them any more, whatever is set later. New ones work.
func (p *Proxy) Abandon() int { return p.each((*link).abandon) }

// Open is how many connections are open at present.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Total is how many connections there have been, refused ones included.
func (p *Proxy) Total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() error {
	close(p.done)
	err := p.listener.Close()
	p.Cut()
	p.wg.Wait()
	if err != nil {
		return fmt.Errorf("closing a fault proxy: %w", err)
	}
	return nil
}

func (p *Proxy) each(do func(*link)) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		do(l)
	}
	return len(p.links)
}

// current is the fault, and a channel that is closed when it changes.
func (p *Proxy) current() (fault Fault, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault, p.changed
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client went away before
		}
		p.mu.Lock()
		p.total++
		refuse, network, address := p.fault.Refuse, p.network, p.address
		p.mu.Unlock()
		if refuse {
			reset(client)
			continue
		}
		p.wg.Go(func() { p.carry(client, network, address) })
	}
}

// carry connects a client with the server until both are done.
func (p *Proxy) carry(client net.Conn, network, address string) {
	server, err := net.Dial(network, address)
	if err != nil {
		reset(client) // what a client sees of an absent server
		return
	}
	l := newLink(p, client, server)
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()
	select {
	case <-p.done: // Close may have passed over the links already.
		l.reset()
	default:
	}
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// reset closes a connection so that the other side learns of it by a reset.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // what fails here was closed
	}
	_ = c.Close() // it is thrown away
}
