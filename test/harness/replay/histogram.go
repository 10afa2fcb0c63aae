// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math/bits"
	"time"
)

// subBuckets is the number of buckets within each power of two, so that a
// quantile is exact to one part in that many.
const (
	subBits    = 7
	subBuckets = 1 << subBits
)

// Histogram counts durations in buckets whose width is proportional to their
// value, as HdrHistogram does: 0.8 % of it, from a microsecond to an hour, in
// fixed memory. The zero value is empty.
type Histogram struct {
	counts [33 * subBuckets]uint64
	n      uint64
	max    time.Duration
}

// Add counts a duration; a negative one counts as none.
func (h *Histogram) Add(d time.Duration) {
	us := uint64(max(d, 0) / time.Microsecond)
	h.counts[min(bucketOf(us), len(h.counts)-1)]++
	h.n++
	h.max = max(h.max, d)
}

// bucketOf numbers the buckets without gaps: up to subBuckets microseconds one
// each, then subBuckets/2 for every doubling.
func bucketOf(us uint64) int {
	shift := max(bits.Len64(us)-subBits, 0)
	return shift*subBuckets/2 + int(us>>shift)
}

// upperEnd is the largest number of microseconds in a bucket.
func upperEnd(bucket int) uint64 {
	if bucket < subBuckets {
		return uint64(bucket)
	}
	shift := bucket/(subBuckets/2) - 1
	first := uint64(bucket-shift*subBuckets/2) << shift
	return first + 1<<shift - 1
}

// Count is how many durations were added.
func (h *Histogram) Count() int { return int(h.n) }

// Max is the longest.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile is a duration that the share q of all does not exceed; zero when
// there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.n))
	var seen uint64
	for bucket, n := range h.counts {
		if seen += n; n > 0 && seen > min(rank, h.n-1) {
			return min(time.Duration(upperEnd(bucket))*time.Microsecond, h.max)
		}
	}
	return h.max
}
