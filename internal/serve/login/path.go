// SPDX-License-Identifier: Apache-2.0

package login

import (
	"net/url"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/console/view"
)

// maxPath bounds the path that a user returns to, in bytes: a cookie has it.
const maxPath = 1000

// AddressOf is that of the page for logging in, which leads back to a path.
func AddressOf(back string) string {
	return view.LoginPath + "?" + url.Values{view.ReturnInput: {back}}.Encode()
}

// pathOf returns a path that leads to a page of this server, whatever it was given.
func pathOf(back string) string {
	if isOurs(back) {
		return back
	}
	return view.FleetPath
}

// isOurs tells whether browsers take an address for a path of this server. They read "\" as "/", take "//" for the
// beginning of a host, and leave out tabs and lines.
func isOurs(address string) bool {
	if len(address) > maxPath || !strings.HasPrefix(address, "/") || strings.Contains(address, `\`) {
		return false
	}
	u, err := url.Parse(address) // it refuses control characters
	switch {
	case err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "":
		return false
	case strings.Contains(u.Path, "//") || strings.Contains(u.Path, `\`):
		return false
	}
	// A page for logging in that led to itself would be no end.
	return u.Path != view.LogoutPath && u.Path != view.LogoutCallbackPath && u.Path != view.LoginPath && !strings.HasPrefix(u.Path, view.LoginPath+"/")
}
