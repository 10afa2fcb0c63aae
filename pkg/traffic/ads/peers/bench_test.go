// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"fmt"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/confirmed"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
)

// What is told of such a step, and taken over, all 10,000 in one operation.
func BenchmarkStepToldAndTaken(b *testing.B) {
	x := confirmed.NewIndex()
	all := make([]confirmed.Proxy, 10_000)
	for i := range all {
		all[i] = confirmed.Proxy{UID: fmt.Sprintf("7d3c1f0e-0000-4000-8000-%012d", i), Namespace: "shop", Pod: fmt.Sprintf("front-5d9c7b6f4-%05d", i)}
		x.Opened(all[i], now)
		for r := range 5 {
			x.Happened(all[i], acked(routeOf(fmt.Sprintf("shop/service-%02d|8080", r), 6)))
		}
	}
	m := peers.NewMirror()
	var read confirmed.Cursor
	var number uint64
	bytes := 0
	tell := func() {
		for more := true; more; {
			var changes []confirmed.Change
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
