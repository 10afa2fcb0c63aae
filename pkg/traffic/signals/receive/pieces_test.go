// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/test/harness/grpcpipe"
)

// door lets everybody in as a gateway that has all clusters, or as a proxy that does.
type door struct {
	nobody
	gateway bool
}

func (d door) Admit(context.Context, []string) (Admission, error) {
	return Admission{Proxy: identity.Proxy{Namespace: "shop", Pod: "a", PodUID: "a"}, Gateway: d.gateway, Has: everything}, nil
}

// releases with two variations each.
func releases(n int) (clusters []string) {
	for i := range n {
		for _, v := range []string{"stable", "canary"} {
			clusters = append(clusters, fmt.Sprintf("namespace-%02d/service-name-%03d|8080|%s", i%40, i, v))
		}
	}
	return clusters
}

// order in which Envoy sends counters, gauges and histograms.
func order(f *dto.MetricFamily) int {
	switch m := f.GetMetric()[0]; {
	case m.Counter != nil:
		return 0
	case m.Gauge != nil:
		return 1
	default:
		return 2
	}
}

func marshal(m proto.Message) []byte {
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return data
}

// pieces of a flush as Envoy makes them.
func pieces(m *metricsv3.StreamMetricsMessage) (out []*metricsv3.StreamMetricsMessage) {
	for piece := range slices.Chunk(m.EnvoyMetrics, Batch) {
		out = append(out, &metricsv3.StreamMetricsMessage{EnvoyMetrics: piece})
	}
	return out
}

// M1 of the review of the mesh: five hundred releases behind one gateway, through a real server.
func TestAFlushInPiecesIsCountedOnceAndWhole(t *testing.T) {
	d := door{gateway: true}
	s := New(Config{}, d, d, time.Now)
	client := metricsv3.NewMetricsServiceClient(grpcpipe.Dial(t, s.Register, serve.Options()...))
	stream, err := client.StreamMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := telling(releases(500)...)
	slices.SortStableFunc(m.EnvoyMetrics, func(a, b *dto.MetricFamily) int { return order(a) - order(b) })
	sent := pieces(m)
	for _, piece := range sent {
		if size := len(encoded(t, piece)); size > maxMessage {
			t.Fatalf("a piece has %d bytes", size)
		}
		if err := stream.Send(piece); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		t.Fatal(err)
	}
	if len(sent) < 10 {
		t.Errorf("it came in %d pieces", len(sent))
	}
	for i := range 500 {
		got := s.Service(fmt.Sprintf("namespace-%02d", i%40), fmt.Sprintf("service-name-%03d", i), time.Now().Add(-time.Minute))
		if len(got.Variations) != 2 || got.Gapped != 0 {
			t.Fatalf("of release %d: %+v", i, got)
		}
		for _, v := range got.Variations {
			if v.Total[signals.Completed] != 7 || v.InFlight != 3 || v.Total.Latency()[0] != 1 {
				t.Fatalf("of release %d: %+v", i, v)
			}
		}
	}
}

func TestPiecesAreTheWholeInWhateverOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := telling(releases(rapid.IntRange(1, 4).Draw(t, "releases"))...)
		m.EnvoyMetrics = rapid.Permutation(m.EnvoyMetrics).Draw(t, "order")
		known := &names{}
		find := func(cluster []byte) (string, signals.Slot, bool) { return known.find(cluster, everything) }
		var joined *flush
		for piece := range slices.Chunk(m.EnvoyMetrics, rapid.IntRange(1, 40).Draw(t, "size")) {
			f := &flush{find: find}
			if err := f.decode(marshal(&metricsv3.StreamMetricsMessage{EnvoyMetrics: piece})); err != nil {
				t.Fatal(err)
			}
			if joined == nil {
				joined = f
			} else {
				joined.join(f)
			}
		}
		whole, err := read(marshal(m))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(whole, joined.Flush); d != "" {
			t.Fatalf("the flush (-whole +joined):\n%s", d)
		}
	})
}

func TestAPodThatSendsTooMuchIsRefusedOnEachOfItsStreams(t *testing.T) {
	d := door{}
	s := New(Config{Signals: signals.Config{SlotsOfProxy: 1}}, d, d, func() time.Time { return time.Unix(0, 0) })
	client := metricsv3.NewMetricsServiceClient(grpcpipe.Dial(t, s.Register, serve.Options()...))
	for _, name := range []string{"the first stream", "the next one"} {
		stream, err := client.StreamMetrics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			if stream.Send(telling("shop/web|80|stable")) != nil {
				break
			}
		}
		if err := stream.RecvMsg(&metricsv3.StreamMetricsResponse{}); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s ends with %v", name, err)
		}
	}
}
