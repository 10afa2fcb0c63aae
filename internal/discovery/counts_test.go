// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"testing"
	"time"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
	"github.com/plumbline-dev/plumbline/test/harness/grpcpipe"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// divided is a Service with a split, in which the canary has a tenth.
func divided(namespace, name string, n byte) ir.Service {
	s := serviceOf(namespace, name, fmt.Sprintf("10.1.%d.1:8080", n), n)
	ends := s.Ports[0].Slots[0].Endpoints
	s.Ports[0].Slots = []ir.Slot{{Variation: "stable", Endpoints: ends}, {Variation: "canary", Endpoints: ends}}
	s.Sequence = 7
	s.Routing = &traffic.Routing{
		Shares: traffic.Shares{{Variation: "stable", Weight: 9000}, {Variation: "canary", Weight: 1000, Reserved: 10000}}, Salt: "salt",
	}
	return s
}

// counted is a server of counts behind the directory, as the discovery server has it.
type counted struct {
	t         *testing.T
	clock     *clocktesting.FakeClock
	catalog   *Catalog
	directory *Directory
	server    *receive.Server
	client    metricsv3.MetricsServiceClient
	pods      *service
}

func newCounted(t *testing.T, config signals.Config) *counted {
	t.Helper()
	clock := clocktesting.NewFakeClock(begin)
	c := NewCatalog(serve.NewProofs())
	publish(t, c, begin, divided("shop", "web", 1))
	d := NewDirectory(believer{}, web("1", corev1.PodRunning), c, nil)
	d.AnyAddress = true // a pipe has none
	observer, err := newCountsObserver(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	server := receive.New(receive.Config{Signals: config}, counting{d}, observer, clock.Now)
	return &counted{
		t: t, clock: clock, catalog: c, directory: d, server: server, pods: &service{directory: d, counts: server},
		client: metricsv3.NewMetricsServiceClient(grpcpipe.Dial(t, server.Register, serve.Options()...)),
	}
}

// tell sends that so many requests to a variation are over, on a stream of its own.
func (c *counted) tell(variation string, n float64) metricsv3.MetricsService_StreamMetricsClient {
	c.t.Helper()
	s, err := c.client.StreamMetrics(metadata.AppendToOutgoingContext(c.t.Context(), "authorization", "Bearer 1"))
	if err != nil {
		c.t.Fatal(err)
	}
	if err := s.Send(&metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{{
		Name: new("cluster.upstream_rq_completed"), Type: dto.MetricType_COUNTER.Enum(), Metric: []*dto.Metric{{
			Label: []*dto.LabelPair{{Name: new("envoy.cluster_name"), Value: new("shop/web|80|" + variation)}}, Counter: &dto.Counter{Value: &n},
		}},
	}}}); err != nil {
		c.t.Fatal(err)
	}
	return s
}

// has waits until so many requests are counted, of so many proxies.
func (c *counted) has(requests uint64, proxies int) {
	c.t.Helper()
	poll.Until(c.t, time.Minute, "the requests are counted", func() error {
		var n uint64
		var told int
		for _, v := range c.server.Service("shop", "web", c.clock.Now().Add(-time.Minute)).Variations {
			n, told = n+v.Total[signals.Completed], told+v.Proxies
		}
		if n != requests || told != proxies {
			return fmt.Errorf("%d requests of %d proxies, want %d of %d", n, told, requests, proxies)
		}
		return nil
	})
}

// H3: the counts of a proxy were dropped for half an hour and more after the annotation of its
// pod or its namespace had changed, and no list named the proxy.
func TestAProxyWhoseAnnotationChangedIsCountedOnItsNextStream(t *testing.T) {
	c := newCounted(t, signals.Config{})
	s := c.tell("canary", 5)
	c.has(5, 1)
	c.pods.endings().rescoped("1")
	if err := s.RecvMsg(&metricsv3.StreamMetricsResponse{}); err == nil {
		t.Fatal("its stream goes on")
	}
	c.has(5, 1)
	c.tell("canary", 5)
	c.has(10, 1)
	c.tell("canary", 5)
	c.has(15, 1)
}

func TestAPodThatIsGoneIsNoProxyAnyMore(t *testing.T) {
	c := newCounted(t, signals.Config{})
	c.tell("canary", 5)
	c.has(5, 1)
	c.pods.endings().gone("1")
	c.has(5, 0)
}
