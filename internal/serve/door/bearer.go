// SPDX-License-Identifier: Apache-2.0

package door

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/httpapi"
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

// tokenProtocol begins the subprotocol that has the token of a WebSocket, as kube-apiserver takes it: a page can set no headers
// of a WebSocket. The token is encoded as base64url without padding.
const tokenProtocol = "base64url.bearer.authorization.k8s.io."

var errNoTokenProtocol = errors.New("send one subprotocol \"" + tokenProtocol + "TOKEN\" in base64url, and beside it \"" + httpapi.Subprotocol + "\"")

// moveToken moves the token of a WebSocket from its subprotocol to the header Authorization. Another subprotocol has to stay, since
// browsers demand that one of those that they offer is answered, and the token is not.
func moveToken(headers http.Header) error {
	const name = "Sec-WebSocket-Protocol"
	var others []string
	token := ""
	for protocol := range strings.SplitSeq(strings.Join(headers.Values(name), ","), ",") {
		protocol = strings.TrimSpace(protocol)
		encoded, found := strings.CutPrefix(protocol, tokenProtocol)
		if !found {
			others = append(others, protocol)
			continue
		}
		raw, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil || len(raw) == 0 || token != "" {
			return errNoTokenProtocol
		}
		token = string(raw)
	}
	switch {
	case token == "":
		return nil
	case strings.Join(others, "") == "":
		return errNoTokenProtocol
	}
	headers.Set(name, strings.Join(others, ", "))
	headers.Add("Authorization", "Bearer "+token)
	return nil
}
