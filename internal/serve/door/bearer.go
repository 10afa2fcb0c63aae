// SPDX-License-Identifier: Apache-2.0

package door

import (
	"errors"
	"net/http"
	"strings"
)

// maxToken bounds a token in bytes, as the API server's own header limits do in effect.
const maxToken = 8 << 10

var errNoToken = errors.New("send one header \"Authorization: Bearer TOKEN\"")

// bearer returns the token of a request (RFC 6750, 2.1). A request with two headers is refused: another server on the way
// may have read the other one.
func bearer(headers http.Header) (string, error) {
	values := headers.Values("Authorization")
	if len(values) != 1 {
		return "", errNoToken
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken || strings.ContainsFunc(token, isNotOfToken) {
		return "", errNoToken
	}
	return token, nil
}

// isNotOfToken tells whether a token cannot have a character: it has letters, digits and -._~+/ with = at its end.
func isNotOfToken(r rune) bool {
	switch {
	case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z':
		return false
	}
	return !strings.ContainsRune("-._~+/=:", r) // bootstrap and static tokens of a file may have a colon
}
