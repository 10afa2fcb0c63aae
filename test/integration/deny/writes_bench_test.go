// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkWrites is what Deny costs a trusted writer, who passes every
// expression: one client, one Deployment, a change of spec per write. Guards
// elsewhere are evaluated up to their namespace selector.
func BenchmarkWrites(b *testing.B) {
	cases := []struct {
		name      string
		here      int // guards that deny in the namespace
		elsewhere int // guards that deny in others
	}{
		{"no guard denies", 0, 0},
		{"one guard denies", 1, 0},
		{"one guard denies here and 20 elsewhere", 1, 20},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			s := newShop(b, nil)
			d := s.deployed(b, "web")
			for i := range c.here + c.elsewhere {
				namespace := s.namespace
				if i >= c.here {
					namespace = "no-such-namespace"
				}
				g := guard(fmt.Sprintf("%s-%d", s.namespace, i), namespace)
				mustDo(b, admin.Create(b.Context(), g))
				b.Cleanup(func() { mustDo(b, admin.Delete(context.WithoutCancel(b.Context()), g)) })
				mustDo(b, awaitEnforced(b.Context(), g))
			}
			writer := as(b, ci)
			took := make([]time.Duration, 0, b.N)
			for n := 0; b.Loop(); n++ {
				start := time.Now()
				mustDo(b, merge(fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, n%7+1))(b.Context(), writer, d))
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "writes/s")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			mustDo(b, client.IgnoreNotFound(remove()(b.Context(), writer, d)))
		})
	}
}
