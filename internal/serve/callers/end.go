// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// latestEnd bounds the ends that are read: a later one is no number of seconds that time can hold.
const latestEnd = 1 << 40

// EndOf reads when a token ends: the claim "exp" of a JSON Web Token (RFC 7519, 4.1.4), in whole seconds. The
// claim is read after the API server has verified the token, and only ever shortens how long the answer counts.
func EndOf(token string) (end time.Time, told bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		End *float64 `json:"exp"`
	}
	if err := json.Unmarshal(raw, &claims); err != nil || claims.End == nil {
		return time.Time{}, false
	}
	return time.Unix(int64(min(max(*claims.End, 0), latestEnd)), 0), true
}
