// SPDX-License-Identifier: Apache-2.0

// Package grpcpipe connects a gRPC client and a server within one test's memory.
package grpcpipe

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// buffered is how much a connection holds that its other end has not read.
const buffered = 64 << 10

// Dial serves what is registered until the test ends, and connects a client to it.
func Dial(t testing.TB, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	return dial(t, func(l net.Listener) net.Listener { return l }, register, options...)
}

// DialFrom is Dial for a server that sees an address at the client's end.
func DialFrom(t testing.TB, from netip.Addr, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	end := net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 40_000))
	return dial(t, func(l net.Listener) net.Listener { return addressed{l, end} }, register, options...)
}

// addressed accepts connections from an address.
type addressed struct {
	net.Listener
	from net.Addr
}

type connection struct {
	net.Conn
	from net.Addr
}

// Accept implements net.Listener.
func (a addressed) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	return connection{c, a.from}, err
}

// RemoteAddr implements net.Conn.
func (c connection) RemoteAddr() net.Addr { return c.from }

func dial(t testing.TB, seen func(net.Listener) net.Listener, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(buffered)
	server := grpc.NewServer(options...)
	register(server)
	done := make(chan error)
	go func() { done <- server.Serve(seen(listener)) }()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return conn
}
