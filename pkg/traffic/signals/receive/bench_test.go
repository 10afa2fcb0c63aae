// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the peer
	"google.golang.org/grpc/mem"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

type nobody struct{}

func (nobody) Streams(int)          {}
func (nobody) Received(int)         {}
func (nobody) Rejected(Reason, int) {}

// BenchmarkDecode reads what a stream begins with, and what it goes on with, by our own
// decoder and by the types of the library.
func BenchmarkDecode(b *testing.B) {
	slots := []string{"shop/web|80|stable", "shop/web|80|canary"}
	for name, m := range map[string]*metricsv3.StreamMetricsMessage{"first": first(telling(slots...)), "next": telling(slots...)} {
		data := encoded(b, m)
		buffers := mem.BufferSlice{mem.SliceBuffer(data)}
		s := New(Config{}, nil, nobody{}, time.Now)
		b.Run(name+"/ours", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				m := &message{server: s, has: everything}
				if err := serve.Codec().Unmarshal(buffers, m); err != nil {
					b.Fatal(err)
				}
				s.flushes.Put(m.flush)
			}
		})
		b.Run(name+"/library", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := encoding.GetCodecV2("proto").Unmarshal(buffers, &metricsv3.StreamMetricsMessage{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkProxies is what 10,000 proxies cost that tell of two slots each, every ten
// seconds for half an hour: time for a flush, and memory for a proxy, less that of the
// connection. Beside it the last message of each proxy is kept as the library has it.
func BenchmarkProxies(b *testing.B) {
	const proxies = 10_000
	data := encoded(b, telling("shop/web|80|stable", "shop/web|80|canary"))
	for _, flushes := range []int{1, 180} {
		b.Run(fmt.Sprintf("ours/%d flushes", flushes), func(b *testing.B) {
			for b.Loop() {
				now := time.Unix(1_800_000_000, 0)
				s := New(Config{}, nil, nobody{}, func() time.Time { return now })
				before := memory()
				for i := range proxies {
					uid := fmt.Sprintf("0b7e4a6c-0000-0000-0000-%012d", i)
					if _, err := s.open(Admission{Proxy: identity.Proxy{Namespace: "shop", Pod: uid[:20], PodUID: uid}}); err != nil {
						b.Fatal(err)
					}
				}
				began := time.Now()
				tell(b, s, data, &now, proxies, flushes)
				b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(proxies*flushes), "ns/flush")
				b.ReportMetric(float64(memory()-before)/proxies, "B/proxy")
				began = time.Now()
				if got := s.Service("shop", "web", now.Add(-time.Minute)); got.Variations[0].Proxies != proxies {
					b.Fatalf("%d proxies", got.Variations[0].Proxies)
				}
				b.ReportMetric(float64(time.Since(began).Microseconds()), "µs/reading")
				runtime.KeepAlive(s)
			}
		})
	}
	b.Run("library/1 flushes", func(b *testing.B) {
		for b.Loop() {
			before := memory()
			kept := make([]*metricsv3.StreamMetricsMessage, proxies)
			began := time.Now()
			for i := range kept {
				kept[i] = &metricsv3.StreamMetricsMessage{}
				if err := encoding.GetCodecV2("proto").Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, kept[i]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(time.Since(began).Nanoseconds())/proxies, "ns/flush")
			b.ReportMetric(float64(memory()-before)/proxies, "B/proxy")
			runtime.KeepAlive(kept)
		}
	})
}

// tell has all proxies send their flushes, each with other numbers than the last.
func tell(b *testing.B, s *Server, data []byte, now *time.Time, proxies, flushes int) {
	b.Helper()
	for n := range flushes {
		*now = now.Add(signals.Width)
		for i := range proxies {
			uid := fmt.Sprintf("0b7e4a6c-0000-0000-0000-%012d", i)
			m := &message{server: s, has: everything}
			if err := m.Decode(data); err != nil {
				b.Fatal(err)
			}
			m.flush.At = *now
			for j := range m.flush.Slots {
				m.flush.Slots[j].Counts[signals.Started] += uint64(n*i) % 1000 //nolint:gosec // above zero
			}
			s.take(uid, m.flush)
			s.flushes.Put(m.flush)
		}
	}
}

// memory that is in use.
func memory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse) //nolint:gosec // less than 2^63
}
