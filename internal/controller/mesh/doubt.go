// SPDX-License-Identifier: Apache-2.0

package mesh

// plausible is how many resources there have to be before their loss is doubted: of
// a few, half go every day.
const plausible = 40

// Doubt holds back what has lost more than half of what was published last, until a
// second look says the same: a cache that was filled anew, or a list cut off, looks
// like this, and a proxy that believes it has nowhere to send its requests.
type Doubt struct {
	published int
	doubted   uint64
	doubts    bool
}

// Believes says whether so many resources are published, and what to ask next time.
// digest is equal for equal resources.
func (d Doubt) Believes(resources int, digest uint64) (Doubt, bool) {
	lost := d.published >= plausible && resources < d.published/2
	if seen := d.doubts && d.doubted == digest; lost && !seen {
		return Doubt{published: d.published, doubted: digest, doubts: true}, false
	}
	return Doubt{published: resources}, true
}
