// SPDX-License-Identifier: Apache-2.0

package discovery

import "time"

// plausible is how many resources there have to be before their loss is doubted: of
// a few, half go every day.
const plausible = 40

// doubtedAtMost is how long a loss is doubted that lasts, while everything else
// changes: where many pods come and go no two looks are the same, and until a look is
// believed no proxy learns of anything, a rollback included.
const doubtedAtMost = 5 * time.Second

// Doubt holds back what has lost more than half of what was published last, until a
// second look says the same: a cache that was filled anew, or a list cut off, looks
// like this, and a proxy that believes it has nowhere to send its requests.
type Doubt struct {
	published int
	doubted   uint64
	// since is when the loss was seen first, same when it was first as it is; zero
	// while nothing is doubted.
	since, same time.Time
}

// Believes says whether so many resources are published, and what to ask next time.
// digest is equal for equal resources. A look that something else hastened is no
// second one.
func (d Doubt) Believes(resources int, digest uint64, now time.Time) (Doubt, bool) {
	lost := d.published >= plausible && resources < d.published/2
	if !lost {
		return Doubt{published: resources}, true
	}
	if d.since.IsZero() {
		d.since = now
	}
	if d.same.IsZero() || d.doubted != digest {
		d.doubted, d.same = digest, now
	}
	if now.Sub(d.same) >= again || now.Sub(d.since) >= doubtedAtMost {
		return Doubt{published: resources}, true
	}
	return d, false
}
