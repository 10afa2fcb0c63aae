// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	xdsresource "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
)

// snapshots is a server with go-control-plane's SnapshotCache, over TLS and with the
// options of ours. It asks for no token.
type snapshots struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	b         *testing.B
	seen      *sightings
	cache     cache.SnapshotCache
	streams   delta.Server
	address   string
	authority []byte
	number    int
	// version of the route that is expected, as the cache gives it, and the nonce that
	// it was sent under.
	version, nonce atomic.Value
}

func startSnapshots(b *testing.B, seen *sightings) publisher {
	s := &snapshots{b: b, seen: seen, cache: cache.NewSnapshotCache(true, cache.IDHash{}, nil)}
	s.streams = delta.NewServer(b.Context(), s.cache, s)
	var serving tls.Certificate
	serving, s.authority = envoy.NewServing(b)
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // as a server would
	if err != nil {
		b.Fatal(err)
	}
	s.address = l.Addr().String()
	g := grpc.NewServer(append(serve.Options(), grpc.Creds(credentials.NewServerTLSFromCert(&serving)))...)
	discovery.RegisterAggregatedDiscoveryServiceServer(g, s)
	go func() {
		if err := g.Serve(l); err != nil {
			b.Errorf("the reference ended: %v", err)
		}
	}()
	b.Cleanup(g.Stop)
	return s
}

func (s *snapshots) join() {
	envoy.Start(s.b, envoy.Options{Address: s.address, Authority: s.authority, Node: "web-0", Token: "web-0"})
}

func (s *snapshots) prepare(b *testing.B, all []*ads.Resource) func() error {
	b.Helper()
	byType := map[xdsresource.Type][]types.Resource{}
	for _, r := range all {
		packed := &anypb.Any{}
		if err := proto.Unmarshal(r.Body, packed); err != nil {
			b.Fatal(err)
		}
		made, err := packed.UnmarshalNew()
		if err != nil {
			b.Fatal(err)
		}
		byType[r.Type.URL()] = append(byType[r.Type.URL()], made)
		if r.Type == ads.Route {
			body, err := cache.MarshalResource(made)
			if err != nil {
				b.Fatal(err)
			}
			s.version.Store(cache.HashResource(body))
		}
	}
	s.number++
	number := strconv.Itoa(s.number)
	return func() error {
		snapshot, err := cache.NewSnapshot(number, byType)
		if err != nil {
			return err
		}
		return s.cache.SetSnapshot(context.Background(), "web-0", snapshot)
	}
}

// DeltaAggregatedResources implements the service.
func (s *snapshots) DeltaAggregatedResources(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.streams.DeltaStreamHandler(&noted{stream, s}, xdsresource.AnyType)
}

// noted is a stream of which is noted when something was sent; the callback comes before.
type noted struct {
	discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
	of *snapshots
}

// Send implements the stream.
func (n *noted) Send(r *discovery.DeltaDiscoveryResponse) error {
	err := n.AggregatedDiscoveryService_DeltaAggregatedResourcesServer.Send(r)
	if err == nil && r.GetNonce() == n.of.nonce.Load() {
		note(n.of.seen.now.Load().sent)
	}
	return err
}

// OnDeltaStreamOpen implements delta.Callbacks.
func (*snapshots) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }

// OnDeltaStreamClosed implements delta.Callbacks.
func (*snapshots) OnDeltaStreamClosed(int64, *corev3.Node) {}

// OnStreamDeltaRequest implements delta.Callbacks.
func (s *snapshots) OnStreamDeltaRequest(_ int64, r *discovery.DeltaDiscoveryRequest) error {
	if e := r.GetErrorDetail(); e != nil {
		s.b.Errorf("the proxy refuses %s: %s", r.GetTypeUrl(), e.GetMessage())
		return nil
	}
	if r.GetResponseNonce() != "" && r.GetResponseNonce() == s.nonce.Load() {
		note(s.seen.now.Load().acknowledged)
	}
	return nil
}

// OnStreamDeltaResponse implements delta.Callbacks.
func (s *snapshots) OnStreamDeltaResponse(_ int64, _ *discovery.DeltaDiscoveryRequest, r *discovery.DeltaDiscoveryResponse) {
	for _, sent := range r.GetResources() {
		if r.GetTypeUrl() == ads.Route.URL() && sent.GetVersion() == s.version.Load() {
			s.nonce.Store(r.GetNonce())
		}
	}
}
