// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"time"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	client "github.com/prometheus/client_model/go"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
)

// batch bounds the families of one message; the server takes 8,192.
const batch = 1_000

// tell the discovery server what the program counts, until ctx ends. What is counted while there is no
// stream is lost, as it is with an Envoy, and the server knows of the gap.
func (a *Agent) tell(ctx context.Context, counter Counter) {
	began := time.Now()
	f := flusher{}
	var open *countStream
	for ctx.Err() == nil {
		wait(ctx, a.config.Flush)
		counted, err := counter.Count(ctx)
		if err != nil {
			a.config.Log.Warn("agent.counts.unread", "error", err)
			continue
		}
		families := f.families(counted, time.Now(), time.Since(began))
		if open == nil {
			open, err = a.openCounts(ctx)
		}
		if err == nil {
			err = open.send(families)
		}
		if err != nil && ctx.Err() == nil {
			a.config.Log.Info("agent.counts.unsent", "error", err)
			open.close()
			open = nil
		}
	}
	open.close()
}

// countStream is a stream of the metrics service.
type countStream struct {
	client metricsv3.MetricsService_StreamMetricsClient
	first  *metricsv3.StreamMetricsMessage_Identifier
	end    func()
}

func (c *countStream) close() {
	if c != nil {
		c.end()
	}
}

func (c *countStream) send(families []*client.MetricFamily) error {
	for len(families) > 0 {
		n := min(batch, len(families))
		if err := c.client.Send(&metricsv3.StreamMetricsMessage{Identifier: c.first, EnvoyMetrics: families[:n]}); err != nil {
			return fmt.Errorf("sending counts: %w", err)
		}
		c.first, families = nil, families[n:]
	}
	return nil
}

// openCounts opens a stream at the replica that the agent's resources come from, or at the first.
func (a *Agent) openCounts(ctx context.Context) (*countStream, error) {
	address := a.config.Server.Addresses[0]
	if current := a.current.Load(); current != nil {
		address = *current
	}
	conn, err := a.config.Server.dial(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	end := func() {
		cancel()
		_ = conn.Close() // nothing of it is needed any more
	}
	authorized, err := a.config.Server.authorize(ctx)
	if err != nil {
		end()
		return nil, err
	}
	s, err := metricsv3.NewMetricsServiceClient(conn).StreamMetrics(authorized)
	if err != nil {
		end()
		return nil, fmt.Errorf("opening a stream of counts: %w", err)
	}
	return &countStream{client: s, first: &metricsv3.StreamMetricsMessage_Identifier{Node: a.config.Server.node(a.connector.Kind())}, end: end}, nil
}

// flusher makes of counts the families that an Envoy would send.
type flusher struct{ active map[envoyname.Slot]uint64 }

// families of counts at a time; up is how long the agent has counted.
func (f *flusher) families(counted map[envoyname.Slot]Counted, now time.Time, up time.Duration) []*client.MetricFamily {
	w := familyWriter{at: now.UnixMilli()}
	w.gauge("server.uptime", "", uint64(up/time.Second)) //nolint:gosec // positive
	active := map[envoyname.Slot]uint64{}
	for slot, c := range counted {
		name := slot.String()
		active[slot] = c.InFlight
		// A request that is in flight has begun, and neither is answered nor was given up.
		started := c.Answered + c.GivenUp + c.InFlight - min(f.active[slot], c.Answered+c.GivenUp+c.InFlight)
		w.counter("cluster.upstream_rq_total", name, "", started)
		w.counter("cluster.upstream_rq_completed", name, "", c.Answered)
		w.counter("cluster.upstream_rq_xx", name, "5", c.Failed)
		w.counter("cluster.upstream_rq_xx", name, "4", c.ClientErrors)
		w.counter("cluster.upstream_rq_xx", name, "2", c.Answered-min(c.Answered, c.Failed+c.ClientErrors))
		w.gauge("cluster.upstream_rq_active", name, c.InFlight)
		if c.FailedOver > 0 {
			w.counter("cluster.canary.upstream_rq_completed", name, "", c.FailedOver)
			w.counter("cluster.canary.upstream_rq_xx", name, "2", c.FailedOver)
		}
	}
	f.active = active
	return w.families
}

// familyWriter collects families of one metric each, as an Envoy sends them.
type familyWriter struct {
	at       int64
	families []*client.MetricFamily
}

func (w *familyWriter) counter(name, cluster, class string, n uint64) {
	m := w.metric(cluster, class)
	m.Counter = &client.Counter{Value: new(float64(n))}
	w.families = append(w.families, &client.MetricFamily{Name: &name, Type: client.MetricType_COUNTER.Enum(), Metric: []*client.Metric{m}})
}

func (w *familyWriter) gauge(name, cluster string, n uint64) {
	m := w.metric(cluster, "")
	m.Gauge = &client.Gauge{Value: new(float64(n))}
	w.families = append(w.families, &client.MetricFamily{Name: &name, Type: client.MetricType_GAUGE.Enum(), Metric: []*client.Metric{m}})
}

func (w *familyWriter) metric(cluster, class string) *client.Metric {
	m := &client.Metric{TimestampMs: &w.at}
	if class != "" {
		m.Label = append(m.Label, &client.LabelPair{Name: new("envoy.response_code_class"), Value: &class})
	}
	if cluster != "" {
		m.Label = append(m.Label, &client.LabelPair{Name: new("envoy.cluster_name"), Value: &cluster})
	}
	return m
}
