// SPDX-License-Identifier: Apache-2.0

package acknowledged_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
)

const many = 10_000

// populated are so many proxies, each with so many routes that somebody decides about.
func populated(proxies, routes int) (*acknowledged.Index, []acknowledged.Proxy) {
	x := acknowledged.NewIndex()
	all := make([]acknowledged.Proxy, proxies)
	for i := range all {
		all[i] = acknowledged.Proxy{UID: fmt.Sprintf("7d3c1f0e-0000-4000-8000-%012d", i), Namespace: "shop", Pod: fmt.Sprintf("front-5d9c7b6f4-%05d", i)}
		x.Opened(all[i], now)
	}
	for r := range routes {
		resource := routeOf(fmt.Sprintf("shop/service-%02d|8080", r), 6)
		for _, p := range all {
			x.Happened(p, acked(resource))
		}
	}
	return x, all
}

// One weight step that 10,000 proxies acknowledge; one operation is one of them.
func BenchmarkAcknowledgment(b *testing.B) {
	for _, routes := range []int{1, 5, 50} {
		b.Run(fmt.Sprint(routes, "-routes"), func(b *testing.B) {
			x, all := populated(many, routes)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				x.Happened(all[i%many], acked(routeOf("shop/service-00|8080", uint64(7+i/many))))
			}
		})
	}
}

// Whether a step of 10,000 proxies on two replicas is in force.
func BenchmarkJudge(b *testing.B) {
	x, all := populated(many, 5)
	routes := []string{"shop/service-00|8080"}
	wanted := make([]acknowledged.Wanted, len(all))
	for i, p := range all {
		wanted[i] = acknowledged.Wanted{Proxy: p, Routes: routes, Since: started}
	}
	b.ReportAllocs()
	for b.Loop() {
		acknowledged.Judge(acknowledged.Question{Now: now, Applied: applied, Wanted: wanted, Replicas: []acknowledged.Replica{
			{Name: "a", Heard: true, Records: x.Records(nil, routes)}, {Name: "b", Heard: true, Records: map[string]acknowledged.Record{}},
		}})
	}
}

// BenchmarkRecords reads the records for a step that 10,000 proxies have to acknowledge. It tells for how
// long the lock is held, which is for 256 of them at a time: an answer of a proxy waits for that.
func BenchmarkRecords(b *testing.B) {
	x, all := populated(many, 5)
	uids := make([]string, len(all))
	for i, p := range all {
		uids[i] = p.UID
	}
	for b.Loop() {
		x.Records(uids, []string{"shop/service-00|8080"})
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N)*256/many, "ms-locked")
}

// BenchmarkAcknowledgments is how long an answer of a proxy waits while 500 releases, each of which 100 of
// 10,000 proxies have to acknowledge, are looked at one after the other without a pause.
func BenchmarkAcknowledgments(b *testing.B) {
	const releases, voters = 500, 100
	x, all := populated(many, 5)
	stop := make(chan struct{})
	var looks sync.WaitGroup
	var looked atomic.Int64
	looks.Go(func() {
		for {
			for r := range releases {
				uids := make([]string, voters)
				for i := range uids {
					uids[i] = all[(r*voters+i)%many].UID
				}
				x.Records(uids, []string{fmt.Sprintf("shop/service-%02d|8080", r%5)})
				looked.Add(1)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	var waited []time.Duration
	for i := 0; b.Loop(); i++ {
		e := acked(routeOf("shop/service-00|8080", uint64(7+i/many)))
		start := time.Now()
		x.Happened(all[i%many], e)
		waited = append(waited, time.Since(start))
	}
	close(stop)
	looks.Wait()
	slices.Sort(waited)
	b.ReportMetric(float64(looked.Load())/b.Elapsed().Seconds(), "looks/s")
	for name, at := range map[string]int{"µs-p50": len(waited) / 2, "µs-p99": len(waited) * 99 / 100, "µs-max": len(waited) - 1} {
		b.ReportMetric(float64(waited[at].Nanoseconds())/1000, name)
	}
}

// BenchmarkMemory says what 10,000 proxies take.
func BenchmarkMemory(b *testing.B) {
	for _, routes := range []int{1, 5, 50} {
		b.Run(fmt.Sprint(routes, "-routes"), func(b *testing.B) {
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC() // the one of the round before goes
				runtime.ReadMemStats(&before)
				index, _ := populated(many, routes)
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(index)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/many, "bytes/proxy")
		})
	}
}
