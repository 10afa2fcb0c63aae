// SPDX-License-Identifier: Apache-2.0

package quantile

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Report the median of what was measured and what all but a hundredth do not exceed, in
// milliseconds. Of fewer than a hundred durations the latter is the longest.
func Report(b *testing.B, name string, took []time.Duration) {
	b.Helper()
	if len(took) == 0 {
		b.Fatalf("%s was never measured", name)
	}
	for _, percent := range []int{50, 99} {
		b.ReportMetric(float64(Of(took, percent).Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", name, percent))
	}
}

// Of durations, of which there is at least one: the smallest of them that so many percent
// do not exceed, by the nearest rank.
func Of(took []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
