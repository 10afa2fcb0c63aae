// SPDX-License-Identifier: Apache-2.0

package wire

import authenticationv1 "k8s.io/api/authentication/v1"

// Whoami is the caller as the API server knows the caller.
type Whoami struct {
	ID     string   `json:"id,omitempty"`
	User   string   `json:"user"`
	Groups []string `json:"groups"`
}

// WhoamiOf shows a user.
func WhoamiOf(u *authenticationv1.UserInfo) Whoami {
	return Whoami{ID: u.UID, User: u.Username, Groups: append([]string{}, u.Groups...)}
}
