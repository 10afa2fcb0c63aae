// SPDX-License-Identifier: Apache-2.0

package traffic

// MaxAhead bounds how far ahead of the newest decision a program is believed to be. A store that is restored is behind
// by the decisions since, and a program may report any number.
const MaxAhead = 1_000_000

// BoundAhead returns the sequence that the next decision has to be above if a program reports the sequence ahead. It is
// 0 for a report that is more than [MaxAhead] above the newest decision, since no later decision could be above that.
func BoundAhead(newest, ahead uint64) uint64 {
	if ahead > newest && ahead-newest > MaxAhead {
		return 0
	}
	return ahead
}
