// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRequestsThatTheStableVariationServedCountForNeither(t *testing.T) {
	latency := func(c Counts, bucket int, n uint64) Counts {
		c.Latency()[bucket] = n
		return c
	}
	tests := map[string]struct {
		told, served Counts
		want         Counts
	}{
		"none was":      {of(map[Counter]uint64{Started: 3, Completed: 3, Class2: 3}), Counts{}, of(map[Counter]uint64{Started: 3, Completed: 3, Class2: 3})},
		"all were":      {of(map[Counter]uint64{Started: 3, Completed: 3, Class2: 2, Class5: 1}), of(map[Counter]uint64{Completed: 3, Class2: 2, Class5: 1}), of(map[Counter]uint64{FailedOver: 3})},
		"some were":     {of(map[Counter]uint64{Started: 5, Completed: 5, Class2: 3, Class5: 2}), of(map[Counter]uint64{Completed: 2, Class2: 1, Class5: 1}), of(map[Counter]uint64{Started: 3, Completed: 3, Class2: 2, Class5: 1, FailedOver: 2})},
		"attempts stay": {of(map[Counter]uint64{Started: 1, NotConnected: 2, Retried: 2, Completed: 1, Class2: 1}), of(map[Counter]uint64{Completed: 1, Class2: 1}), of(map[Counter]uint64{NotConnected: 2, Retried: 2, FailedOver: 1})},
		"their latencies are left out": {
			latency(of(map[Counter]uint64{Started: 4, Completed: 4, Class2: 4}), 7, 4), latency(of(map[Counter]uint64{Completed: 1, Class2: 1}), 7, 1),
			latency(of(map[Counter]uint64{Started: 3, Completed: 3, Class2: 3, FailedOver: 1}), 7, 3),
		},
		"calls of the same flush are left out": {
			latency(of(map[Counter]uint64{Started: 4, Completed: 4, Class2: 4, GRPCOK: 3, GRPCFailed: 1}), 7, 4), of(map[Counter]uint64{Completed: 1, Class2: 1}),
			of(map[Counter]uint64{FailedOver: 4}),
		},
		"cancellations of the same flush too": {of(map[Counter]uint64{Started: 2, Completed: 1, Class2: 1, Canceled: 1}), of(map[Counter]uint64{Completed: 1, Class2: 1}), of(map[Counter]uint64{Started: 1, FailedOver: 1})},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.told
			got.exclude(&test.served, &failover{})
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("what counts (-want +got):\n%s", d)
			}
		})
	}
}

// A proxy reads its latencies before its counters, so those of a request that ends in between are in the next flush.
// They counted for the variation: of three requests that the stable one had served, one.
func TestALatencyThatIsToldAFlushLaterIsExcluded(t *testing.T) {
	var latency Counts
	latency.Latency()[7] = 1
	counted := of(map[Counter]uint64{Started: 1, Completed: 1, Class2: 1})
	for name, flushes := range map[string][2]Counts{
		"after its status":  {counted, latency},
		"before its status": {latency, counted},
	} {
		t.Run(name, func(t *testing.T) {
			var sum Counts
			var left failover
			for _, told := range flushes {
				served := told
				served[Started] = 0 // of which the stable variation has none
				told.exclude(&served, &left)
				sum.Add(&told)
			}
			if d := cmp.Diff(of(map[Counter]uint64{FailedOver: 1}), sum); d != "" {
				t.Errorf("what counts (-want +got):\n%s", d)
			}
		})
	}
}

// A request that the stable version served may begin, end, and be told to be one of these in
// three different flushes. The numbers are right when further requests have come.
func TestWhereverFlushesFallEachRequestIsExcludedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flushes := make([]Counts, 6)
		served := make([]Counts, len(flushes))
		own, away := uint64(180), uint64(0)
		flushes[5] = of(map[Counter]uint64{Started: 180, Completed: 180, Class2: 60, Class4: 60, Class5: 60})
		for range rapid.IntRange(0, 60).Draw(t, "requests") {
			class := rapid.SampledFrom([]Counter{Class2, Class4, Class5}).Draw(t, "class")
			begins := rapid.IntRange(0, 2).Draw(t, "begins")
			ends := rapid.IntRange(begins, 3).Draw(t, "ends")
			flushes[begins][Started]++
			flushes[ends][Completed]++
			flushes[ends][class]++
			if !rapid.Bool().Draw(t, "failed over") {
				own++
				continue
			}
			away++
			told := ends + rapid.IntRange(0, 1).Draw(t, "told")
			served[told][Completed]++
			served[told][class]++
		}
		var sum Counts
		var left failover
		for i := range flushes {
			flushes[i].exclude(&served[i], &left)
			sum.Add(&flushes[i])
		}
		classes := sum[Class2] + sum[Class4] + sum[Class5]
		if sum[Completed] != own || sum[Started] != own || classes != own || sum[FailedOver] != away {
			t.Fatalf("%d of the variation, %d with a class, %d failed over, want %d and %d", sum[Completed], classes, sum[FailedOver], own, away)
		}
	})
}
