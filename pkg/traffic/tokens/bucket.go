// SPDX-License-Identifier: Apache-2.0

// Package tokens bounds how much of something there is in a time, with a bucket of tokens.
package tokens

import "time"

// Rate is how many tokens come back in a second, and how many a bucket holds.
type Rate struct{ PerSecond, Burst float64 }

// Bucket holds tokens. One that spends more than there are is in debt. Its methods are not to be
// called at once.
type Bucket struct {
	tokens float64
	at     time.Time
}

// NewBucket makes one that is full.
func NewBucket(r Rate, now time.Time) Bucket { return Bucket{r.Burst, now} }

// Spend takes tokens, and says whether there were enough.
func (b *Bucket) Spend(r Rate, tokens float64, now time.Time) bool {
	b.fill(r, now)
	b.tokens -= tokens
	return b.tokens >= 0
}

// Earn gives tokens, up to as many as the bucket holds.
func (b *Bucket) Earn(r Rate, tokens float64, now time.Time) {
	b.fill(r, now)
	b.tokens = min(r.Burst, b.tokens+tokens)
}

// Full says that a new bucket would hold no more.
func (b *Bucket) Full(r Rate, now time.Time) bool {
	b.fill(r, now)
	return b.tokens >= r.Burst
}

// fill gives back the tokens of the time that has passed.
func (b *Bucket) fill(r Rate, now time.Time) {
	b.tokens = min(r.Burst, b.tokens+r.PerSecond*max(0, now.Sub(b.at).Seconds()))
	b.at = now
}

// Of a message the tokens are one, and one for each 4 KiB.
func Of(bytes int) float64 { return 1 + float64(bytes/(4<<10)) }
