// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

const (
	keyIDBytes       = 2
	valueDigestBytes = 16
	// digestPrefix marks a mask's value that is too long or too secret to show.
	digestPrefix = "digest:"
)

// digest identifies a value without showing it: HMAC-SHA256, cut to 128 bits,
// behind an identifier of the key, so that digests under another key are told
// from other values. Absent values (nil) have one too. Without a key it is
// empty, and nothing compares as equal to it.
func (s *step) digest(value []byte) string { return valueDigest(s.in.Config.Key, value) }

func valueDigest(key, value []byte) string {
	if len(key) == 0 {
		return ""
	}
	domain := "value:"
	if value == nil {
		domain = "absent"
	}
	return keyID(key) + "." + hex.EncodeToString(mac(key, domain, value)[:valueDigestBytes])
}

func keyID(key []byte) string { return hex.EncodeToString(mac(key, "key", nil)[:keyIDBytes]) }

func mac(key []byte, domain string, value []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(domain))
	h.Write(value)
	return h.Sum(nil)
}

// comparable tells whether a digest was made with the present key.
func (s *step) comparable(digest string) bool {
	return len(s.in.Config.Key) > 0 && strings.HasPrefix(digest, keyID(s.in.Config.Key)+".")
}

// maskValue is what a mask keeps of a value: the value itself, or its digest
// where that must not be shown or is too long. Absent is empty.
func (s *step) maskValue(c diff.Change) string {
	if c.After == nil {
		return ""
	}
	if shown := diff.Redact(c); len(c.After) <= maxValue && string(shown.After) == string(c.After) {
		return string(c.After)
	}
	return digestPrefix + s.digest(c.After)
}

// maskDigest is the digest of the value that a mask keeps.
func (s *step) maskDigest(m *v1alpha1.Mask) string {
	if digest, ok := strings.CutPrefix(m.Value, digestPrefix); ok {
		return digest
	}
	if m.Value == "" {
		return s.digest(nil)
	}
	return s.digest([]byte(m.Value))
}

// shownMaskValue is the value for people, empty when only its digest is kept.
func shownMaskValue(m *v1alpha1.Mask) string {
	if strings.HasPrefix(m.Value, digestPrefix) {
		return ""
	}
	return m.Value
}
