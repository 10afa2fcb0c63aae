// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"
	"time"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	"google.golang.org/protobuf/proto"
)

func TestCountsAreWhatAnEnvoySends(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_123)
	data := (&Counts{Clusters: []string{"a", "b"}, At: at, Requests: 8, Node: &Node{ID: "pod"}}).Encode()
	var m metricsv3.StreamMetricsMessage
	if err := proto.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	if n := len(m.GetEnvoyMetrics()); n != 10 || m.GetIdentifier().GetNode().GetId() != "pod" || len(data) < 60_000 {
		t.Fatalf("%d metrics in %d bytes", n, len(data))
	}
	latency := m.GetEnvoyMetrics()[9]
	h := latency.GetMetric()[0].GetHistogram()
	if latency.GetName() != "cluster.upstream_rq_time" || h.GetSampleCount() != 8 || len(h.GetBucket()) != 33 || h.GetBucket()[32].GetCumulativeCount() != 8 {
		t.Errorf("the latencies are %v", latency)
	}
	metric := m.GetEnvoyMetrics()[7].GetMetric()[0]
	if metric.GetCounter().GetValue() != 8 || metric.GetTimestampMs() != at.UnixMilli() || metric.GetLabel()[1].GetValue() != "b" {
		t.Errorf("the answers are %v", metric)
	}
}
