// SPDX-License-Identifier: Apache-2.0

package door

import (
	"errors"
	"net/http"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/serve/callers"
)

var errNoToken = errors.New("send one header \"Authorization: Bearer TOKEN\"")

// bearer returns the token of a request (RFC 6750, 2.1). A request with two headers is refused: another server on the way
// may have read the other one.
func bearer(headers http.Header) (string, error) {
	values := headers.Values("Authorization")
	if len(values) != 1 {
		return "", errNoToken
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || !callers.IsToken(token) {
		return "", errNoToken
	}
	return token, nil
}
