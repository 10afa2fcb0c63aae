// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Counts is a StreamMetricsMessage: what an Envoy has counted of the requests to
// clusters since it told the last time. All of them were answered.
type Counts struct {
	Clusters []string
	At       time.Time
	// Requests to each cluster.
	Requests uint64
	// Node of the client, in the first message of a stream.
	Node *Node
}

// Encode a message. Each number is a family of its own, as an Envoy sends them.
func (c *Counts) Encode() []byte {
	var b []byte
	if c.Node != nil {
		b = bytes(b, 1, bytes(nil, 1, c.Node.encode()))
	}
	n := double(nil, 1, float64(c.Requests))
	for _, cluster := range c.Clusters {
		for _, name := range []string{"total", "completed"} {
			b = c.family(b, "cluster.upstream_rq_"+name, cluster, "", 3, n)
		}
		b = c.family(b, "cluster.upstream_rq_xx", cluster, "2", 3, n)
		b = c.family(b, "cluster.upstream_rq_active", cluster, "", 2, double(nil, 1, 0))
		b = c.family(b, "cluster.upstream_rq_time", cluster, "", 7, c.latencies())
	}
	return b
}

// family of one metric; value is the field that says what there is of it.
func (c *Counts) family(b []byte, name, cluster, class string, value protowire.Number, body []byte) []byte {
	var metric []byte
	if class != "" {
		metric = bytes(metric, 1, text(text(nil, 1, "envoy.response_code_class"), 2, class))
	}
	metric = bytes(metric, 1, text(text(nil, 1, "envoy.cluster_name"), 2, cluster))
	metric = bytes(metric, value, body)
	metric = protowire.AppendVarint(protowire.AppendTag(metric, 6, protowire.VarintType), uint64(c.At.UnixMilli())) //nolint:gosec // since 1970
	return bytes(b, 2, bytes(text(nil, 1, name), 4, metric))
}

// latencies of at most four milliseconds in 33 buckets.
func (c *Counts) latencies() []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), c.Requests)
	for half := range 33 {
		bound := math.Pow(2, float64(half)/2)
		bucket := protowire.AppendTag(nil, 1, protowire.VarintType)
		bucket = protowire.AppendVarint(bucket, min(c.Requests, c.Requests*uint64(half)/4)) //nolint:gosec // small
		b = bytes(b, 3, double(bucket, 2, bound))
	}
	return b
}

func double(b []byte, number protowire.Number, value float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), math.Float64bits(value))
}
