// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/tokens"
)

// services that a proxy sees, with a cluster and endpoints each.
func services(n int) *ads.View {
	var all []*ads.Resource
	for i := range n {
		name := fmt.Sprintf("shop/web-%d|8080|stable", i)
		all = append(all, resource(ads.Cluster, name, strings.Repeat("c", 800)), resource(ads.Endpoints, name, strings.Repeat("e", 800)))
	}
	return ads.NewView(all...)
}

// longNames are as long as a name may be.
func longNames(from, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%0317d", from+i))
	}
	return names
}

// processor time of this process: that of the client, which is a part of it, comes on top of
// what the server needs.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTheProcessorThatAHostilePodTakes measures requests that are as costly as can be, on a
// stream without a bound of requests; "%core" is what a pod costs that sends as many as it may.
func BenchmarkTheProcessorThatAHostilePodTakes(b *testing.B) {
	for _, attack := range []struct {
		name   string
		tokens float64 // of one round
		// responses to one round, which are answered
		responses int
		request   func(round int) []*discovery.DeltaDiscoveryRequest
	}{
		{"an answer to no response", 1, 0, func(int) []*discovery.DeltaDiscoveryRequest {
			return []*discovery.DeltaDiscoveryRequest{{TypeUrl: ads.Listener.URL(), ResponseNonce: "1"}}
		}},
		{"a name that is not there, and leaving it", 2, 1, func(i int) []*discovery.DeltaDiscoveryRequest {
			name := longNames(i, 1)
			return []*discovery.DeltaDiscoveryRequest{
				{TypeUrl: ads.Endpoints.URL(), ResourceNamesSubscribe: name}, {TypeUrl: ads.Endpoints.URL(), ResourceNamesUnsubscribe: name},
			}
		}},
		{"all clusters anew", 1, 3, func(int) []*discovery.DeltaDiscoveryRequest {
			return []*discovery.DeltaDiscoveryRequest{{TypeUrl: ads.Cluster.URL(), ResourceNamesUnsubscribe: []string{"*"}, ResourceNamesSubscribe: []string{"*"}}}
		}},
	} {
		b.Run(attack.name, func(b *testing.B) {
			w := newWorld(b, serve.Config{Requests: tokens.Rate{PerSecond: 1e9, Burst: 1e9}})
			w.group.Publish(services(300))
			p := w.connect("evil")
			p.ask(ads.Cluster)
			p.ask(ads.Endpoints, longNames(1<<20, 900)...)
			for range 3 + 9 { // both, a hundred at once
				p.gets()
			}
			before := processor(b)
			for i := range b.N {
				for _, r := range attack.request(i) {
					p.send(r)
				}
				for range attack.responses {
					p.gets()
				}
			}
			p.ask(ads.Listener, "mark") // after all of them
			p.gets()
			per := (processor(b) - before) / time.Duration(b.N)
			b.ReportMetric(float64(per.Microseconds())/attack.tokens, "µs-cpu/request")
			b.ReportMetric(20*per.Seconds()/attack.tokens*100, "%core")
		})
	}
}

// BenchmarkTheMemoryThatAHostilePodTakes has four streams ask for as many names as they may, each as
// long as it may be, and say that they have as many more.
func BenchmarkTheMemoryThatAHostilePodTakes(b *testing.B) {
	for range b.N {
		w := newWorld(b, serve.Config{Requests: tokens.Rate{PerSecond: 20, Burst: 1e6}}) // as for a pod that takes its time
		w.group.Publish(services(300))
		before := heap()
		for i := range 4 {
			p := w.connect("evil")
			had := map[string]string{}
			for _, name := range longNames(i*10_000, 1_490) {
				had[name] = "0." + strings.Repeat("v", 300)
			}
			p.send(&discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: ads.Listener.URL(), InitialResourceVersions: had})
			p.ask(ads.Cluster, longNames(1<<20+i*10_000, 990)...)
			for range 2 { // without an answer, which would let go of names
				if _, err := p.stream.Recv(); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below
}
