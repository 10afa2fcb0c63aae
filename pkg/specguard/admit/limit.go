// SPDX-License-Identifier: Apache-2.0

package admit

import "golang.org/x/sync/semaphore"

// maxBytesInFlight bounds the bodies that are in memory at once, beside their
// number: a few large objects must not cost what many small ones do.
const maxBytesInFlight = 32 << 20

// limiter bounds the work in progress. It never queues: the API server waits
// two seconds at most and retries nothing, so a review that would have to wait
// is better allowed at once and counted.
type limiter struct {
	reviews *semaphore.Weighted
	bytes   *semaphore.Weighted
}

func newLimiter(reviews int) *limiter {
	return &limiter{
		reviews: semaphore.NewWeighted(int64(reviews)),
		bytes:   semaphore.NewWeighted(maxBytesInFlight),
	}
}

// enter takes a place for a body of contentLength bytes (negative: unknown, so
// the largest); leave gives it back. It reports false when there is none.
func (l *limiter) enter(contentLength int64) (leave func(), ok bool) {
	weight := contentLength
	if weight < 0 || weight > MaxBodyBytes {
		weight = MaxBodyBytes
	}
	if !l.reviews.TryAcquire(1) {
		return nil, false
	}
	if !l.bytes.TryAcquire(weight) {
		l.reviews.Release(1)
		return nil, false
	}
	return func() {
		l.bytes.Release(weight)
		l.reviews.Release(1)
	}, true
}
