// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	backoffgrpc "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/proxy"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/wire"
)

// member is one proxy. What is not guarded is its own goroutine's.
type member struct {
	fleet                  *Fleet
	index                  int
	address, authorization string
	expects                [4]int
	node                   wire.Node
	proxy                  *proxy.Proxy
	complete               bool
	mode                   atomic.Value // proxy.Mode

	mu     sync.Mutex
	forget bool
	stop   context.CancelCauseFunc // of the connection
}

// live connects, and again after each end, until ctx ends.
func (m *member) live(ctx context.Context) {
	for ctx.Err() == nil {
		if door := m.fleet.closed.Load(); door != nil {
			select {
			case <-*door:
			case <-ctx.Done():
			}
		}
		if !m.connect(ctx) {
			return
		}
		wait(ctx, backoff(0))
	}
}

// connect until the connection is cut; false if there can be none.
func (m *member) connect(ctx context.Context) bool {
	conn, err := m.dial()
	if err != nil { // of the options alone: nothing is dialled yet
		m.fleet.failed.Add(1)
		return false
	}
	ctx, stop := context.WithCancelCause(ctx)
	m.fleet.connected.Add(1)
	m.mu.Lock()
	m.stop = stop
	m.mu.Unlock()
	if m.fleet.closed.Load() != nil { // since before there was something to cut
		stop(errCut)
	}
	var told sync.WaitGroup
	if m.fleet.config.Counting {
		told.Go(func() { m.tell(ctx, conn) })
	}
	m.streams(ctx, conn)
	stop(nil)
	told.Wait()
	_ = conn.Close() // nothing of it is needed any more
	m.fleet.connected.Add(-1)
	return true
}

// source is the address of the proxy's pod, on this machine: the server bounds the connections of
// each address.
func (m *member) source() *net.TCPAddr {
	return &net.TCPAddr{IP: net.IPv4(127, 1+byte(m.index>>16), byte(m.index>>8), byte(m.index))} //nolint:gosec // some thousands
}

func (m *member) dial() (*grpc.ClientConn, error) {
	from := net.Dialer{LocalAddr: m.source()}
	return grpc.NewClient("passthrough:///"+m.address,
		grpc.WithTransportCredentials(credentials.NewTLS(m.fleet.tls)),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(m.fleet.codec), grpc.MaxCallRecvMsgSize(16<<20)),
		grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(16<<10),
		grpc.WithInitialWindowSize(1<<20), grpc.WithInitialConnWindowSize(1<<20), // and none that is adapted
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return from.DialContext(ctx, "tcp", to) }),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoffgrpc.Config{BaseDelay: time.Second, Multiplier: 2, Jitter: 0.5, MaxDelay: 2 * time.Second}, MinConnectTimeout: 20 * time.Second}),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry())
}

// streams opens one stream after the other on a connection, until that is cut. An
// Envoy whose stream is refused keeps the connection.
func (m *member) streams(ctx context.Context, conn *grpc.ClientConn) {
	for attempt := 0; ; attempt++ {
		if m.stream(ctx, conn) {
			attempt = 0
		}
		if ctx.Err() != nil {
			return
		}
		m.fleet.failed.Add(1)
		wait(ctx, backoff(attempt))
	}
}

// stream opens one and keeps to the protocol until it ends; true if anything came.
func (m *member) stream(ctx context.Context, conn *grpc.ClientConn) (answered bool) {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, "authorization", m.authorization))
	defer cancel()
	s, err := conn.NewStream(ctx, &description, delta, grpc.WaitForReady(true))
	if err != nil {
		return false
	}
	m.begin()
	if !send(s, m.proxy.Start()) {
		return false
	}
	for {
		if m.mode.Load() == proxy.Slow {
			wait(ctx, slowness)
		}
		var r wire.Response
		if s.RecvMsg(&r) != nil {
			return answered
		}
		answered = true
		m.proxy.Behave(m.mode.Load().(proxy.Mode))
		if !send(s, m.proxy.Receive(r)) {
			return answered
		}
		m.fleet.watched.Load().note(m.index, &r)
		m.count()
	}
}

// slowness is how long a slow proxy leaves a response unread.
const slowness = time.Second

func send(s grpc.ClientStream, requests []wire.Request) bool {
	for i := range requests {
		if s.SendMsg(&requests[i]) != nil {
			return false
		}
	}
	return true
}

// begin forgets, if that was asked for.
func (m *member) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.forget {
		m.forget = false
		m.proxy.Forget()
	}
}

// count notes whether it has everything.
func (m *member) count() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.complete || m.forget || m.proxy.Held() != m.expects {
		return
	}
	m.complete = true
	m.fleet.last.Store(time.Now().UnixNano())
	m.fleet.complete.Add(1)
}

// cut the connection. What it has, it forgets before the next stream.
func (m *member) cut(forget bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if forget {
		m.forget = true
		if m.complete {
			m.complete = false
			m.fleet.complete.Add(-1)
		}
	}
	if m.stop != nil {
		m.stop(errCut)
	}
}

// backoff is Envoy's with the bootstrap of sidecars and gateways: by chance, up to one second, and
// then up to two.
func backoff(attempt int) time.Duration {
	return rand.N(min(2*time.Second, time.Second<<min(attempt, 1)))
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
