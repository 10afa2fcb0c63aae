// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// String is one line for people.
func (r *Result) String() string {
	var b strings.Builder
	q := func(h *Histogram, share float64) string {
		return h.Quantile(share).Round(10 * time.Microsecond).String()
	}
	fmt.Fprintf(&b, "%5d/s: %d sent, %.0f/s answered, p50 %s, p99 %s, p99.9 %s, max %s, shed %d, errors %d",
		r.Rate, r.Sent, r.Achieved, q(&r.Latency, .5), q(&r.Latency, .99), q(&r.Latency, .999),
		r.Latency.Max().Round(10*time.Microsecond), r.Shed, r.Failed())
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(&b, " [%s: %d]", kind, r.Errors[kind])
	}
	fmt.Fprintf(&b, "; sent late p50 %s, p99 %s", q(&r.Late, .5), q(&r.Late, .99))
	return b.String()
}

// Failed is the number of requests without a good answer.
func (r *Result) Failed() int {
	n := 0
	for _, count := range r.Errors {
		n += count
	}
	return n
}
