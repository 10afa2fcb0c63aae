// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Hash is a digest with the prefix that names its algorithm:
// "pl1:sha256:<64 lowercase hex digits>" or "sha256:<64 lowercase hex digits>".
// Compare hashes only for equality, and only of one algorithm and one object:
// equal content in two objects has one hash.
type Hash string

// Algorithm names a way to hash.
type Algorithm string

// The algorithms. Any change of rule or table is a new one.
const (
	// PL1 is Plumbline's own, the default.
	PL1 Algorithm = "pl1"
	// DDEM002 is the algorithm of DD-EM-002, kept for comparison.
	DDEM002 Algorithm = "ddem002"
)

const (
	prefixPL1     = "pl1:sha256:"
	prefixDDEM002 = "sha256:"
	hexDigits     = 64
)

// ParseHash checks that s is a hash of a known algorithm and returns it.
func ParseHash(s string) (Hash, error) {
	digest, ok := strings.CutPrefix(s, prefixPL1)
	if !ok {
		digest, ok = strings.CutPrefix(s, prefixDDEM002)
	}
	if !ok {
		return "", fmt.Errorf("parsing hash %.80q: want prefix %q or %q", s, prefixPL1, prefixDDEM002)
	}
	if len(digest) != hexDigits || strings.Trim(digest, "0123456789abcdef") != "" {
		return "", fmt.Errorf("parsing hash %.80q: want %d lowercase hex digits after the prefix", s, hexDigits)
	}
	return Hash(s), nil
}

// Algorithm tells which algorithm made h; "" when h is none that [ParseHash]
// would accept.
func (h Hash) Algorithm() Algorithm {
	if _, err := ParseHash(string(h)); err != nil {
		return ""
	}
	if strings.HasPrefix(string(h), prefixPL1) {
		return PL1
	}
	return DDEM002
}

// HashBody is the pl1 hash of an object's JSON bytes, without the excluded
// paths (see [Document.Hash]). The error is a [*SyntaxError].
func HashBody(body []byte, gvk GVK, exclude ...Path) (Hash, error) {
	d, err := Parse(body, gvk)
	if err != nil {
		return "", err
	}
	defer d.Release()
	return d.Hash(exclude...), nil
}

func formatHash(prefix string, sum []byte) Hash {
	var text [len(prefixPL1) + hexDigits]byte
	out := append(text[:0], prefix...)
	return Hash(hex.AppendEncode(out, sum))
}
