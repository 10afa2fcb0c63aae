// SPDX-License-Identifier: Apache-2.0

package callers

import "strings"

// MaxToken bounds a token in bytes, as the API server's own header limits do in effect.
const MaxToken = 8 << 10

// IsToken tells whether a text can be a token (RFC 6750, 2.1).
func IsToken(text string) bool {
	return text != "" && len(text) <= MaxToken && !strings.ContainsFunc(text, isNotOfToken)
}

// isNotOfToken tells whether a token cannot have a character: it has letters, digits and -._~+/ with = at its end.
func isNotOfToken(r rune) bool {
	switch {
	case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z':
		return false
	}
	return !strings.ContainsRune("-._~+/=:", r) // bootstrap and static tokens of a file may have a colon
}
