// SPDX-License-Identifier: Apache-2.0

//go:build integration

package inject

import (
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// controlPlane answers each first request for a type with its resources, once it is
// released, and notes who came and what was counted.
type controlPlane struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	metricsv3.UnimplementedMetricsServiceServer
	resources map[string][]*discoveryv3.Resource // by type
	released  chan struct{}

	mu       sync.Mutex
	hellos   int // TLS handshakes that began
	streams  []string
	families []*dto.MetricFamily
}

func newControlPlane(messages map[string]proto.Message) *controlPlane {
	c := &controlPlane{resources: map[string][]*discoveryv3.Resource{}, released: make(chan struct{})}
	for name, m := range messages {
		packed, err := anypb.New(m)
		if err != nil {
			panic(err)
		}
		c.resources[packed.TypeUrl] = append(c.resources[packed.TypeUrl], &discoveryv3.Resource{Name: name, Version: "1", Resource: packed})
	}
	return c
}

// serve serves at a port until the stop function that it returns.
func (c *controlPlane) serve(t *testing.T, address string, cert tls.Certificate) (stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hellos++
		return nil, nil //nolint:nilnil // the configuration as it is
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, c)
	metricsv3.RegisterMetricsServiceServer(server, c)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return sync.OnceFunc(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func (c *controlPlane) DeltaAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	for first := true; ; first = false {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		if first {
			md, _ := metadata.FromIncomingContext(stream.Context())
			c.note(request.GetNode().GetId() + " " + strings.Join(md.Get("authorization"), ","))
		}
		if detail := request.GetErrorDetail(); detail != nil {
			c.note("refused: " + detail.GetMessage())
		}
		if request.GetResponseNonce() != "" {
			continue
		}
		select {
		case <-c.released:
		case <-stream.Context().Done():
			return nil
		}
		if err := stream.Send(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: request.GetTypeUrl(), Nonce: "n", Resources: c.resources[request.GetTypeUrl()]}); err != nil {
			return err
		}
	}
}

func (c *controlPlane) StreamMetrics(stream metricsv3.MetricsService_StreamMetricsServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.families = append(c.families, m.GetEnvoyMetrics()...)
		c.mu.Unlock()
	}
}

func (c *controlPlane) note(stream string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams = append(c.streams, stream)
}

// seen is how many handshakes began, and the streams that came.
func (c *controlPlane) seen() (hellos int, streams []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hellos, append([]string(nil), c.streams...)
}

// counts are what was told of clusters, over all messages.
type counts struct {
	requests, grpcFailures uint64
	buckets                int
	clusters               []string
}

func (c *controlPlane) counted() (out counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clusters := map[string]bool{}
	for _, family := range c.families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "envoy.cluster_name" {
					clusters[label.GetValue()] = true
				}
			}
			switch family.GetName() {
			case "cluster.upstream_rq_time":
				out.requests += metric.GetHistogram().GetSampleCount()
				out.buckets = len(metric.GetHistogram().GetBucket())
			case "cluster.grpc.failure":
				out.grpcFailures += uint64(metric.GetCounter().GetValue())
			}
		}
	}
	out.clusters = slices.Sorted(maps.Keys(clusters))
	return out
}
