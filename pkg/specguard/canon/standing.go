// SPDX-License-Identifier: Apache-2.0

package canon

import "strings"

// Standing says where an object stands after a change that was made to it.
type Standing uint8

// The standings. Unknown is the zero value and decides nothing: neither that
// the change holds, nor that it does not.
const (
	// StandingUnknown: a digest is missing, is none, or cannot be compared.
	StandingUnknown Standing = iota
	// StandingHolds: the object is as the change left it.
	StandingHolds
	// StandingUntouched: the object is as the change left it, and that is as it
	// was before. So it is after a restart, and after a change that did nothing.
	StandingUntouched
	// StandingReverted: the object is again as it was before the change.
	StandingReverted
	// StandingChanged: the object is neither as before nor as after the change.
	StandingChanged
)

// String names the standing in lower case.
func (s Standing) String() string {
	return [...]string{"unknown", "holds", "untouched", "reverted", "changed"}[min(s, StandingChanged)]
}

// Digest is what [Compare] compares: hashes or closure digests.
type Digest interface {
	Hash | ClosureDigest
	// scheme is what two digests must have in common to be compared; empty for
	// what is no digest.
	scheme() string
}

// Compare judges the digests of one object before a change, after it, and now;
// an empty one is unknown. Digests of two objects must not be given: equal
// content has one digest wherever it is.
//
// The checks come in this order. After and now must be known and comparable,
// else the standing is unknown. If they are equal the change holds, and it is
// untouched if before is comparable and equal too. Otherwise the change is
// reverted if before is comparable and equals now, and else the object has
// changed. So what was before, when it is not known, never hides a change.
func Compare[D Digest](before, after, now D) Standing {
	scheme := after.scheme()
	if scheme == "" || now.scheme() != scheme {
		return StandingUnknown
	}
	switch {
	case now == after && before == after:
		return StandingUntouched
	case now == after:
		return StandingHolds
	case now == before:
		return StandingReverted
	default:
		return StandingChanged
	}
}

func (h Hash) scheme() string { return string(h.Algorithm()) }

func (d ClosureDigest) scheme() string {
	if _, err := ParseClosureDigest(string(d)); err != nil {
		return ""
	}
	return string(d[:strings.LastIndexByte(string(d), ':')])
}
