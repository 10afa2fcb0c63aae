// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// of makes counts of a few counters.
func of(numbers map[Counter]uint64) (c Counts) {
	for at, n := range numbers {
		c[at] = n
	}
	return c
}

func TestWhatFails(t *testing.T) {
	tests := map[string]struct {
		told map[Counter]uint64
		want uint64
	}{
		"is what has a 5xx":                                       {map[Counter]uint64{Completed: 9, Class2: 5, Class5: 4}, 4},
		"is no 4xx":                                               {map[Counter]uint64{Completed: 9, Class4: 9}, 0},
		"is a time-out, which is a 504, once":                     {map[Counter]uint64{Completed: 3, Class5: 3, TimedOut: 3}, 3},
		"is a time-out in an answer that has begun":               {map[Counter]uint64{Completed: 3, Class2: 3, TimedOut: 2}, 2},
		"is a call that says so in its trailers":                  {map[Counter]uint64{Completed: 8, Class2: 8, GRPCOK: 3, GRPCFailed: 4, GRPCUnavailable: 1}, 5},
		"is no call that is refused for what it asks":             {map[Counter]uint64{Completed: 8, Class2: 8, GRPCRefused: 8}, 0},
		"is what finds nobody, once, though a call says it twice": {map[Counter]uint64{Completed: 4, Class5: 4, NoneHealthy: 4, GRPCUnavailable: 4}, 4},
		"is what gets no connection, likewise":                    {map[Counter]uint64{Completed: 4, Class5: 4, NotConnected: 4, GRPCUnavailable: 4}, 4},
		"is what finds nobody and is no call":                     {map[Counter]uint64{Completed: 4, Class5: 4, NoneHealthy: 4}, 4},
		"is both a call that finds nobody and one that is told":   {map[Counter]uint64{Completed: 6, Class5: 2, Class2: 4, NotConnected: 2, GRPCUnavailable: 6}, 6},
		"is no attempt that no server saw, if the next succeeds":  {map[Counter]uint64{Started: 3, NotConnected: 3, Completed: 3, Class2: 3, Retried: 3}, 0},
		"is a request, once, if all attempts fail":                {map[Counter]uint64{NotConnected: 12, Completed: 3, Class5: 3, Retried: 9, RetryLimit: 3}, 3},
		"is a call, once, if all attempts fail":                   {map[Counter]uint64{NotConnected: 12, Completed: 3, Class5: 3, Retried: 9, RetryLimit: 3, GRPCUnavailable: 3}, 3},
		"is no call that succeeds after an attempt":               {map[Counter]uint64{Started: 3, NotConnected: 3, Completed: 3, Class2: 3, Retried: 3, GRPCOK: 3}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var between torn
			c, next := of(tc.told), Counts{}
			c.derive(&between)
			next.derive(&between)
			if got := c[Failed] + next[Failed]; got != tc.want {
				t.Errorf("%d failed, want %d", got, tc.want)
			}
		})
	}
}

// A proxy reads its counters while requests go on: one number of a request may be in one
// flush, and another in the next.
func TestARequestThatIsTornFailsOnce(t *testing.T) {
	for name, flushes := range map[string][2]map[Counter]uint64{
		"between a time-out and its status":        {{TimedOut: 1}, {Completed: 1, Class5: 1}},
		"between having nobody and saying so":      {{NoneHealthy: 1, Completed: 1, Class5: 1}, {GRPCUnavailable: 1}},
		"between having no connection and its 5xx": {{NotConnected: 1}, {Completed: 1, Class5: 1, GRPCUnavailable: 1}},
		"between being Unavailable and its reason": {{Completed: 1, Class5: 1, GRPCUnavailable: 1}, {NotConnected: 1}},
		"between a retry and its reason":           {{Retried: 1, Completed: 1, Class5: 1, GRPCUnavailable: 1}, {NotConnected: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var between torn
			a, b, last := of(flushes[0]), of(flushes[1]), Counts{}
			a.derive(&between)
			b.derive(&between)
			last.derive(&between)
			if failed := a[Failed] + b[Failed] + last[Failed]; failed != 1 {
				t.Errorf("it fails %d times", failed)
			}
		})
	}
}

// On a busy node, a proxy that reads its counters waits for a processor between two of them. Of 40 calls, 32
// counted as failed twice.
func TestCallsFailOnceWhenTheProxyIsPreempted(t *testing.T) {
	tests := map[string]struct {
		flushes []map[Counter]uint64
		want    uint64
	}{
		"between their attempts and their status": {[]map[Counter]uint64{
			{NotConnected: 40, Completed: 40, Class5: 40, GRPCUnavailable: 8}, {GRPCUnavailable: 32},
		}, 40},
		"between the last attempts and the status": {[]map[Counter]uint64{
			{NotConnected: 120, Retried: 80, Completed: 40, Class5: 40}, {GRPCUnavailable: 40},
		}, 40},
		"between their status and their attempts": {[]map[Counter]uint64{
			{Completed: 40, Class5: 40, GRPCUnavailable: 40}, {NotConnected: 40},
		}, 40},
		"and answers of the application two flushes later are others": {[]map[Counter]uint64{
			{NotConnected: 40, Completed: 40, Class5: 40}, {}, {Completed: 30, Class2: 30, GRPCUnavailable: 30},
		}, 40 + 30 - threads},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var between torn
			var failed uint64
			for _, told := range append(tc.flushes, nil) {
				c := of(told)
				c.derive(&between)
				failed += c[Failed]
			}
			if failed != tc.want {
				t.Errorf("%d calls fail, want %d", failed, tc.want)
			}
		})
	}
}

func TestATimeOutIsInTheTopBucket(t *testing.T) {
	c := of(map[Counter]uint64{Completed: 5, Class5: 2, TimedOut: 2})
	c.Latency()[3] = 3
	c.derive(&torn{})
	want := make([]uint64, Buckets)
	want[3], want[Buckets-1] = 3, 2
	if d := cmp.Diff(want, c.Latency()); d != "" {
		t.Errorf("the latencies (-want +got):\n%s", d)
	}
}

func TestOutcomes(t *testing.T) {
	for name, tc := range map[string]struct {
		told         map[Counter]uint64
		over, failed uint64
	}{
		"of a variation that hangs are what was given up": {map[Counter]uint64{Started: 7, Canceled: 7}, 7, 7},
		"are answered or given up":                        {map[Counter]uint64{Completed: 10, Failed: 3, Canceled: 2}, 12, 5},
		"are not fewer than those that fail late":         {map[Counter]uint64{Completed: 1, Failed: 4}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := of(tc.told)
			if over, failed := c.Outcomes(); over != tc.over || failed != tc.failed {
				t.Errorf("%d over and %d failed, want %d and %d", over, failed, tc.over, tc.failed)
			}
		})
	}
}

func TestALatencyIsNeverToldToBeShorter(t *testing.T) {
	all := Bounds()
	if len(all) != Buckets-1 || all[0] != 1 || all[Buckets-2] != 65536 {
		t.Fatalf("the bounds are %v", all)
	}
	for i, bound := range all {
		if got := Bucket(bound); got != i {
			t.Errorf("%v is in bucket %d, want %d", bound, got, i)
		}
		if got := Bucket(bound * 1.1); got != i+1 {
			t.Errorf("what is above %v is in bucket %d, want %d", bound, got, i+1)
		}
	}
	if got := Bucket(1e9); got != Buckets-1 {
		t.Errorf("what is above all is in bucket %d", got)
	}
}

func TestEachStatusOfGRPCCountsAsSomething(t *testing.T) {
	kinds := map[Counter]int{}
	for code := range 17 {
		c, known := GRPCStatus(code)
		if !known {
			t.Errorf("status %d counts as nothing", code)
		}
		kinds[c]++
	}
	if d := cmp.Diff(map[Counter]int{GRPCOK: 1, GRPCUnavailable: 1, GRPCFailed: 5, GRPCRefused: 10}, kinds); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, known := GRPCStatus(17); known {
		t.Error("status 17 is none")
	}
}
