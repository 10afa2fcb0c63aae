// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"math"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
)

// slotStats of the clusters whose requests count for a split; another cluster costs
// the proxy and the control plane nothing here. They are what it takes to count what
// the plain counters hide: requests that hang, first attempts, time-outs, and gRPC's
// own status. Each group is a pattern, since Envoy bounds the size of one.
var slotStats = []string{
	`upstream_rq_(time|total|completed|active|timeout|rx_reset)`,
	`upstream_rq_(retry|retry_limit_exceeded|pending_overflow)`,
	`upstream_rq_(cancelled|pending_failure_eject)`,
	`upstream_rq_[1-5]xx`,
	`upstream_cx_(none_healthy|connect_fail)`,
	`grpc\.[a-z0-9_]+`,
	// What the stable variation served for another one, see envoyxds.
	`canary\.upstream_rq_(time|completed|[1-5]xx)`,
}

// ownStats are about the proxy itself. Each is sent with every flush, by every proxy. The uptime
// says whether the process was started again since the flush before.
var ownStats = []string{
	"server.live", "server.uptime", "server.memory_allocated", "control_plane.connected_state",
	"cluster_manager.warming_clusters", "listener_manager.total_listeners_active",
}

func statsConfig() *metricsv3.StatsConfig {
	allowed := &matcherv3.ListStringMatcher{}
	for _, name := range ownStats {
		allowed.Patterns = append(allowed.Patterns, exactly(name))
	}
	for _, group := range slotStats {
		allowed.Patterns = append(allowed.Patterns, &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{
			SafeRegex: &matcherv3.RegexMatcher{Regex: envoyname.Measured + group},
		}})
	}
	return &metricsv3.StatsConfig{
		StatsMatcher: &metricsv3.StatsMatcher{StatsMatcher: &metricsv3.StatsMatcher_InclusionList{InclusionList: allowed}},
		HistogramBucketSettings: []*metricsv3.HistogramBucketSettings{{
			Match:   &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: ".upstream_rq_time"}},
			Buckets: latencyBuckets(),
		}},
	}
}

func exactly(text string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: text}}
}

// latencyBuckets are upper bounds in milliseconds from 1 to 65,536, each √2 times the
// one before: a quantile read from them is at most 41 % too high at every height.
func latencyBuckets() []float64 {
	out := make([]float64, 0, 33)
	for half := range 33 {
		bound := math.Ldexp(1, half/2)
		if half%2 == 1 {
			bound *= math.Sqrt2
		}
		out = append(out, bound)
	}
	return out
}

// statsSinks: counters as differences and histograms as buckets, for what was counted
// since the last time, to the same port as everything else.
func statsSinks(p *packer) []*metricsv3.StatsSink {
	return []*metricsv3.StatsSink{{
		Name: "envoy.stat_sinks.metrics_service",
		ConfigType: &metricsv3.StatsSink_TypedConfig{TypedConfig: p.pack(&metricsv3.MetricsServiceConfig{
			GrpcService: xdsService(), TransportApiVersion: corev3.ApiVersion_V3,
			ReportCountersAsDeltas: wrapperspb.Bool(true),
			EmitTagsAsLabels:       true,
			HistogramEmitMode:      metricsv3.HistogramEmitMode_HISTOGRAM,
			BatchSize:              receive.Batch,
		})},
	}}
}

// layeredRuntime: a route that cuts the visitor's key out of a long cookie has a
// pattern larger than the 100 that Envoy allows by default.
func layeredRuntime() *bootstrapv3.LayeredRuntime {
	return &bootstrapv3.LayeredRuntime{Layers: []*bootstrapv3.RuntimeLayer{{
		Name: "static",
		LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: &structpb.Struct{Fields: map[string]*structpb.Value{
			"re2.max_program_size.error_level": structpb.NewNumberValue(5000),
			"re2.max_program_size.warn_level":  structpb.NewNumberValue(5000),
		}}},
	}}}
}
