// SPDX-License-Identifier: Apache-2.0

//go:build integration

package nginx

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/test/harness/edgetraffic"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
)

// BenchmarkStepToProven is one step of a split among Services that have one each: checked, loaded and proven, while no
// client keeps a connection.
func BenchmarkStepToProven(b *testing.B) {
	for _, services := range []int{1, 200} {
		b.Run(fmt.Sprint(services, "-Services"), func(b *testing.B) {
			stableAt, canaryAt := edgetraffic.StartUpstream(b, "stable", 0), edgetraffic.StartUpstream(b, "canary", 0)
			st := newStand(b, portset.Divide(portset.ByHeader, 0, 1, stableAt, canaryAt))
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				ports := portset.ReadBack(b, portset.Divide(portset.ByHeader, traffic.Weight(i%10_000), uint64(i+2), stableAt, canaryAt)) //nolint:gosec // positive
				for other := range services - 1 {
					ports = append(ports, another(ports[0], other))
				}
				begin := time.Now()
				st.proveSoon(b, ports)
				took = append(took, time.Since(begin))
			}
			quantile.Report(b, "step", took)
		})
	}
}

// another is a Service whose split stays.
func another(p envoyxds.Port, i int) envoyxds.Port {
	p.Service, p.Sequence = fmt.Sprint("web-", i), 1
	return p
}

// proveSoon looks each 10 ms.
func (st *stand) proveSoon(b *testing.B, ports []envoyxds.Port) {
	b.Helper()
	for {
		late, err := st.carrier.CarryOut(b.Context(), ports)
		must(b, err)
		if len(late) == 0 {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}
