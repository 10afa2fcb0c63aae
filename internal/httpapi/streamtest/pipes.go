// SPDX-License-Identifier: Apache-2.0

package streamtest

import (
	"context"
	"net"
	"sync"
)

// Pipes is a network in memory, and its listener. Connections have the clock of package synctest, and no buffer.
type Pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

// NewPipes makes a network.
func NewPipes() *Pipes {
	closed := make(chan struct{})
	return &Pipes{make(chan net.Conn), closed, sync.OnceFunc(func() { close(closed) })}
}

// Accept implements net.Listener.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipes) Close() error {
	p.close()
	return nil
}

// Addr implements net.Listener.
func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// Dial connects to the listener, whatever the address.
func (p *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
