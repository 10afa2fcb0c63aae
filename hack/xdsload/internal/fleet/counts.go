// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/wire"
)

// metrics is the method by which proxies tell what they count.
const metrics = "/envoy.service.metrics.v3.MetricsService/StreamMetrics"

// flushes come every so often.
const flushes = 10 * time.Second

// tell what was counted, on a stream beside that of resources, until ctx ends. Each
// proxy begins at a moment of its own, as each Envoy was started at one.
func (m *member) tell(ctx context.Context, conn *grpc.ClientConn) {
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", m.authorization)
	var stream grpc.ClientStream
	for wait(ctx, rand.N(flushes)); ctx.Err() == nil; wait(ctx, flushes) {
		counts := &wire.Counts{Clusters: m.fleet.slots, At: time.Now(), Requests: 100}
		if stream == nil {
			opened, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, metrics, grpc.WaitForReady(true))
			if err != nil {
				m.ended(ctx)
				continue
			}
			stream, counts.Node = opened, &m.node
		}
		if stream.SendMsg(counts) != nil {
			stream = nil
			m.ended(ctx)
		}
	}
}

// ended notes a stream that was not cut.
func (m *member) ended(ctx context.Context) {
	if ctx.Err() == nil {
		m.fleet.failed.Add(1)
	}
}
