// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

// Whoever reaches the port may connect, and each connection takes memory.
func TestAConnectionThatSaysNothingIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := serving(t)
		conn, err := listener.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for buffer := make([]byte, 1024); err == nil; {
			_, err = conn.Read(buffer)
		}
		if took := time.Since(begin); took > 40*time.Second {
			t.Errorf("it is closed after %s", took)
		}
	})
}

func TestAConnectionThatAsksForNothingIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := serving(t)
		conn := dialed(t, listener)
		conn.Connect()
		begin := time.Now()
		synctest.Wait()
		if s := conn.GetState(); s != connectivity.Ready {
			t.Fatalf("it is %s", s)
		}
		for conn.GetState() == connectivity.Ready && time.Since(begin) < 5*time.Minute {
			<-time.After(time.Second)
		}
		if took := time.Since(begin); took > 2*time.Minute {
			t.Errorf("it is %s after %s", conn.GetState(), took)
		}
	})
}

// The proxies of a replica that was started again came to the others at one moment; they
// are to spread over all of them, and not to move as a flock.
func TestConnectionsEndByAgeAndNotAtOneMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const proxies = 5
		w := &world{group: serve.NewGroup(ads.NewView()), ended: map[string]ending{}, refused: map[codes.Code]int{}, bounds: map[serve.Bound]int{}}
		listener := serving(t, serve.New(serve.Config{}, w, serve.NewProofs(), nothing, w).Register)
		ended := make(chan time.Duration, proxies)
		begin := time.Now()
		for i := range proxies {
			conn := dialed(t, listener)
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", fmt.Sprint("Bearer web-", i))
			stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
			if err != nil {
				t.Fatal(err)
			}
			proxy{t, stream}.ask(ads.Cluster)
			go func() {
				for err == nil {
					_, err = stream.Recv()
				}
				ended <- time.Since(begin)
			}()
		}
		var at []time.Duration
		for range proxies {
			at = append(at, <-ended)
		}
		slices.Sort(at)
		// Half an hour, a tenth less or more, and five seconds in which a proxy may go by itself.
		if first, last := at[0], at[proxies-1]; first < 27*time.Minute || last > 33*time.Minute+6*time.Second || len(slices.Compact(at)) < 2 {
			t.Errorf("they end after %v, want from 27 to 33 minutes, and not at one moment", at)
		}
	})
}

func dialed(t *testing.T, listener *bufconn.Listener) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it is closed
	return conn
}

// serving listens until the test ends.
func serving(t *testing.T, services ...func(grpc.ServiceRegistrar)) *bufconn.Listener {
	listener := bufconn.Listen(64 << 10)
	server := grpc.NewServer(serve.Options()...)
	for _, register := range services {
		register(server)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() { // within the bubble
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener
}
