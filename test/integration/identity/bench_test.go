// SPDX-License-Identifier: Apache-2.0

//go:build integration

package identity

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// BenchmarkTokens is what a token costs by the keys, and by a review, on the same
// API server: one after the other, and sixteen at a time. Each is a token of its
// own, since the API server remembers those that it has seen.
func BenchmarkTokens(b *testing.B) {
	with := as(b, xds)
	for _, tc := range []struct {
		name  string
		known bool
		width int
	}{{"keys", true, 1}, {"keys at once", true, 16}, {"review", false, 1}, {"review at once", false, 16}} {
		b.Run(tc.name, func(b *testing.B) {
			s := newShop(b)
			s.allowed(with)
			api, err := identity.NewAPI(with)
			s.must(err)
			wide := identity.Limits{PerSecond: 1e9, Burst: 1e6}
			v := identity.New(identity.Config{API: api, Pods: s, Limits: wide})
			s.must(v.ReadKeys(b.Context()))
			pod := s.create("web-0")
			if tc.known {
				s.see(pod)
			}
			tokens := make([]string, b.N)
			for i := range tokens {
				tokens[i] = s.token(pod, identity.Audience)
			}
			b.ResetTimer()
			var next atomic.Int64
			var group sync.WaitGroup
			for range tc.width {
				group.Go(func() {
					for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
						got, err := v.Verify(b.Context(), tokens[i])
						if err != nil || got.Reviewed == tc.known {
							b.Errorf("reviewed %t: %v", got.Reviewed, err)
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
