// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// Hash is a digest with the prefix that names its algorithm:
// "pl1:sha256:<64 lowercase hex digits>", "pl2:sha256:…" or "sha256:…".
// Compare hashes only for equality, and only of one algorithm and one object:
// equal content in two objects has one hash.
type Hash string

// Algorithm names a way to hash.
type Algorithm string

// The algorithms. Any change of rule or table is a new one.
const (
	// PL1 is Plumbline's own, for the kinds of Kubernetes itself.
	PL1 Algorithm = "pl1"
	// PL2 is Plumbline's own for all other kinds. It equals PL1, except that PL2 covers
	// members of maps whose value is null.
	PL2 Algorithm = "pl2"
	// DDEM002 is the algorithm of DD-EM-002, kept for comparison.
	DDEM002 Algorithm = "ddem002"
)

const (
	prefixPL1     = "pl1:sha256:"
	prefixPL2     = "pl2:sha256:"
	prefixDDEM002 = "sha256:"
	hexDigits     = 64
)

// prefixes holds the prefix of each algorithm's hashes.
var prefixes = map[Algorithm]string{PL1: prefixPL1, PL2: prefixPL2, DDEM002: prefixDDEM002}

// ParseHash checks that s is a hash of a known algorithm and returns it.
func ParseHash(s string) (Hash, error) {
	_, digest := cutPrefix(s)
	if digest == "" {
		return "", fmt.Errorf("parsing hash %.80q: want digits behind the prefix %q, %q or %q", s, prefixPL1, prefixPL2, prefixDDEM002)
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
	algorithm, _ := cutPrefix(string(h))
	return algorithm
}

// cutPrefix splits a hash into the algorithm of its prefix and the digest; both are
// empty where no algorithm has the prefix.
func cutPrefix(hash string) (algorithm Algorithm, digest string) {
	for algorithm, prefix := range prefixes {
		if digest, ok := strings.CutPrefix(hash, prefix); ok {
			return algorithm, digest
		}
	}
	return "", ""
}

// HashBody is the canonical hash of an object's JSON bytes, by the algorithm of its
// kind ([GVK.Algorithm]), without the excluded paths (see [Document.Hash]). The error
// is a [*SyntaxError].
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
