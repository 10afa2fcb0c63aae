// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

// overheard keeps what a client reads.
type overheard struct {
	net.Conn
	mu   sync.Mutex
	read bytes.Buffer
}

// Read implements net.Conn.
func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read.Write(p[:n])
	return n, err
}

// frames that the server has sent unasked, by their type: those that answer PINGs of this client are
// left out.
func (o *overheard) frames() map[http2.FrameType]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	framer := http2.NewFramer(io.Discard, bytes.NewReader(o.read.Bytes()))
	counts := map[http2.FrameType]int{}
	for {
		frame, err := framer.ReadFrame()
		if err != nil { // the last one may not be whole
			return counts
		}
		if ping, is := frame.(*http2.PingFrame); !is || !ping.IsAck() {
			counts[frame.Header().Type]++
		}
	}
}

// gRPC measured the bandwidth of each connection: to each acknowledgment the server sent a PING and
// a window, and the proxy answered the PING.
func TestAnAcknowledgmentIsAnsweredWithNothing(t *testing.T) {
	const steps = 20
	w := &world{t: t, group: serve.NewGroup(ads.NewView(resource(ads.Cluster, "web", "0"))), ended: map[string]ending{}, refused: map[codes.Code]int{}, bounds: map[serve.Bound]int{}}
	listener := serving(t, serve.New(serve.Config{}, w, serve.NewProofs(), nothing, w).Register)
	wire := &overheard{}
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var err error
			wire.Conn, err = listener.DialContext(ctx)
			return wire, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // nothing of it is needed any more
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer web-0"))
	if err != nil {
		t.Fatal(err)
	}
	p := proxy{t, stream}
	p.ask(ads.Cluster)
	for n := range steps {
		if n > 0 {
			w.group.Publish(ads.NewView(resource(ads.Cluster, "web", fmt.Sprint(n))))
		}
		if got, want := p.gets(), fmt.Sprint("Cluster web=", n); got != want {
			t.Fatalf("it gets %s, want %s", got, want)
		}
	}
	counts := wire.frames()
	if counts[http2.FrameData] != steps {
		t.Errorf("the server sent %d frames of data, want %d", counts[http2.FrameData], steps)
	}
	if pings, windows := counts[http2.FramePing], counts[http2.FrameWindowUpdate]; pings > 0 || windows > 1 { // one at the start
		t.Errorf("to %d requests the server sent %d pings and %d windows", steps, pings, windows)
	}
}
