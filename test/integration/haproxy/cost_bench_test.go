// SPDX-License-Identifier: Apache-2.0

//go:build integration

package haproxy

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	connector "github.com/plumbline-dev/plumbline/internal/connector/haproxy"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/test/harness/edgetraffic"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/portset"
	"github.com/plumbline-dev/plumbline/test/harness/quantile"
)

// BenchmarkStepToProven is one step of a split: set in each worker, and read back.
func BenchmarkStepToProven(b *testing.B) {
	stableAt, canaryAt := edgetraffic.StartUpstream(b, "stable", 0), edgetraffic.StartUpstream(b, "canary", 0)
	st := newStand(b, portset.Divide(portset.ByHeader, 0, 1, stableAt, canaryAt))
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		entries := connector.Entries(portset.ReadBack(st, portset.Divide(portset.ByHeader, traffic.Weight(i%10_000), uint64(i+2), stableAt, canaryAt))) //nolint:gosec // positive
		begin := time.Now()
		must(b, st.splits().Set(b.Context(), entries))
		late, err := st.splits().Prove(b.Context(), entries)
		must(b, err)
		took = append(took, time.Since(begin))
		if len(late) > 0 {
			b.Fatalf("late: %v", late)
		}
	}
	quantile.Report(b, "step", took)
}

// BenchmarkRequest is one request on a kept connection: by HAProxy without and with the split, and by an
// Envoy with the split.
func BenchmarkRequest(b *testing.B) {
	stableAt, canaryAt, plain := edgetraffic.StartUpstream(b, "stable", 0), edgetraffic.StartUpstream(b, "canary", 0), freeport.Address(b)
	s := portset.Divide(portset.ByHeader, 5_000, 1, stableAt, canaryAt)
	st := newStand(b, s, fmt.Sprintf("frontend plain\n  bind %s\n  default_backend plain\nbackend plain\n  server s %s\n", plain, stableAt))
	addresses := map[string]string{"HAProxy-plain": plain, "HAProxy-split": st.address, "Envoy-split": startEnvoy(b, s)}
	for _, name := range []string{"HAProxy-plain", "HAProxy-split", "Envoy-split"} {
		b.Run(name, func(b *testing.B) {
			c := edgetraffic.NewClient(b)
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				begin := time.Now()
				got, err := c.Ask(b, http.MethodGet, addresses[name], "x-user", fmt.Sprint("user-", i))
				must(b, err)
				took = append(took, time.Since(begin))
				if got.Status != http.StatusOK {
					b.Fatalf("request %d is answered %d", i, got.Status)
				}
			}
			quantile.Report(b, "request", took)
		})
	}
}
