// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

// What is told of such a step, and taken over, all 10,000 in one operation.
func BenchmarkStepToldAndTaken(b *testing.B) {
	x := acknowledged.NewIndex()
	all := make([]acknowledged.Proxy, 10_000)
	for i := range all {
		all[i] = acknowledged.Proxy{UID: fmt.Sprintf("7d3c1f0e-0000-4000-8000-%012d", i), Namespace: "shop", Pod: fmt.Sprintf("front-5d9c7b6f4-%05d", i)}
		x.Opened(all[i], now)
		for r := range 5 {
			x.Happened(all[i], acked(routeOf(fmt.Sprintf("shop/service-%02d|8080", r), 6)))
		}
	}
	m := peers.NewMirror()
	var read acknowledged.Cursor
	var number uint64
	bytes := 0
	tell := func() {
		for more := true; more; {
			var changes []acknowledged.Change
			changes, read, more = x.Since(read, 2000)
			number++
			data := (&peers.Update{Number: number, Now: now, Changes: changes, Complete: !more}).Encode()
			bytes += len(data)
			var heard peers.Update
			if err := heard.Decode(data); err != nil {
				b.Fatal(err)
			}
			if err := m.Take(&heard, now); err != nil {
				b.Fatal(err)
			}
		}
	}
	m.Begin()
	tell()
	whole := bytes
	bytes = 0
	b.ReportAllocs()
	steps := 0
	for ; b.Loop(); steps++ {
		step := acked(routeOf("shop/service-00|8080", uint64(7+steps)))
		for _, p := range all {
			x.Happened(p, step)
		}
		tell()
	}
	b.ReportMetric(float64(whole), "bytes/whole")
	b.ReportMetric(float64(bytes)/float64(steps), "bytes/step")
}

// What is told of ten seconds of 500 releases with two variations each, all of which have
// requests, and taken over: 1,000 cells in one operation.
func BenchmarkCellsToldAndTaken(b *testing.B) {
	const releases = 500
	m, epoch := peers.NewMirror(), now
	var number, cells uint64
	bytes := 0
	b.ReportAllocs()
	rounds := 0
	for ; b.Loop(); rounds++ {
		u := peers.Update{Now: now, Epoch: epoch, Complete: true}
		number++
		u.Number = number
		for i := range releases {
			for _, variation := range []string{"stable", "canary"} {
				cells++
				cell := busyCell(fmt.Sprintf("service-name-%03d", i), variation, rounds)
				u.Cells = append(u.Cells, peers.Cell{Number: cells, Data: cell.Encode()})
			}
		}
		data := u.Encode()
		bytes += len(data)
		var heard peers.Update
		if err := heard.Decode(data); err != nil {
			b.Fatal(err)
		}
		if err := m.Take(&heard, now); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(bytes)/float64(rounds), "bytes/10s")
	b.ReportMetric(float64(bytes)/float64(cells), "bytes/cell")
}

// busyCell has requests with twelve latencies, of twenty proxies.
func busyCell(service, variation string, n int) signals.Cell {
	start := now.Add(time.Duration(n) * signals.Width)
	c := signals.Cell{
		Slot: signals.Slot{Namespace: "namespace-01", Service: service, Port: 8080, Variation: variation}, Start: start,
		From: start.Add(-time.Second), To: start.Add(signals.Width - time.Second), Stratum: signals.Stratum{Sequence: 4711},
	}
	c.Counts[signals.Started], c.Counts[signals.Completed], c.Counts[signals.Failed] = 950, 948, 8
	c.Counts[signals.Class2], c.Counts[signals.Class4], c.Counts[signals.Class5] = 900, 40, 8
	for i := range 12 {
		c.Counts.Latency()[4+i] = 79
	}
	c.Spread = signals.Spread{Proxies: 20, N: 948, X: 8, NN: 45_000, XN: 400, XX: 6}
	c.Loudest, c.Busiest = signals.Loud{ID: 1 << 63, N: 47, X: 2}, signals.Loud{ID: 1 << 62, N: 61}
	c.Coverage = signals.Coverage{Expected: 20, Telling: 20}
	return c
}
