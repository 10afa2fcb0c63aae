// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

// BenchmarkTheProcessorThatRefusedRemovalsOfAHostilePodTake has a proxy refuse each removal of 300
// clusters, on a stream without a pause between two attempts; "%core" is what the proxy costs with
// the pause of thirty seconds.
func BenchmarkTheProcessorThatRefusedRemovalsOfAHostilePodTake(b *testing.B) {
	const clusters, pause = 300, 30 * time.Second
	w := newWorld(b, serve.Config{Stream: ads.Config{RemovalDeadline: time.Nanosecond}})
	w.group.Publish(services(clusters))
	p := w.connect("evil")
	p.ask(ads.Cluster)
	for range clusters / 100 {
		p.gets()
	}
	w.group.Publish(ads.NewView())
	before := processor(b)
	removals := 0
	for range b.N {
		r, err := p.stream.Recv()
		if err != nil {
			b.Fatal(err)
		}
		removals += len(r.GetRemovedResources())
		p.send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), ErrorDetail: &rpcstatus.Status{Code: 13, Message: "no"}})
	}
	per := (processor(b) - before) / time.Duration(max(1, removals))
	b.ReportMetric(float64(per.Nanoseconds())/1e3, "µs-cpu/removal")
	b.ReportMetric(float64(clusters*per)/float64(pause)*100, "%core")
}
