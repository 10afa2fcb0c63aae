// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/sha256"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/utils/lru"
)

// provenTokens bounds the tokens of which it is known that their signature is good. A proxy shows its token for one
// stream, and ten seconds later for the other one.
const provenTokens = 1 << 14

// keyset is one answer about keys, and the tokens that these keys have proven. A proof by a key holds for as
// long as it counts: the next answer begins with none.
type keyset struct {
	issuer string
	keys   map[string]jose.JSONWebKey // by name
	// proven are the tokens by their SHA-256, as in [reviews].
	proven *lru.Cache
}

func newKeyset(issuer string, keys map[string]jose.JSONWebKey) *keyset {
	return &keyset{issuer: issuer, keys: keys, proven: lru.New(provenTokens)}
}

// has says whether a key has that name; a nil keyset has none.
func (s *keyset) has(name string) bool {
	if s == nil {
		return false
	}
	_, is := s.keys[name]
	return is
}

// proves says whether the key that a token names has signed it.
func (s *keyset) proves(token string, said *claimed) bool {
	id := sha256.Sum256([]byte(token))
	if _, before := s.proven.Get(id); before {
		return true
	}
	key := s.keys[said.key]
	if key.Algorithm != "" && key.Algorithm != said.algorithm || said.verify(key.Key) != nil {
		return false
	}
	s.proven.Add(id, nil)
	return true
}
