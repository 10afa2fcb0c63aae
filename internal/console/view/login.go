// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"fmt"
)

// The paths of logging in and out, where a server has users.
const (
	LoginPath = "/login"
	// IssuerPath leads to the issuer, and CallbackPath is where the issuer leads back to.
	IssuerPath   = LoginPath + "/oidc"
	CallbackPath = LoginPath + "/callback"
	LogoutPath   = "/logout"
	// LogoutCallbackPath is where the issuer leads back to after a logout.
	LogoutCallbackPath = LogoutPath + "/callback"
)

// The inputs of the form, and the query of the path to return to.
const (
	TokenInput  = "token"
	ReturnInput = "return"
)

// Login is the page on which a user logs in.
type Login struct {
	// Return is the path of this server that the user is led to.
	Return string
	// Issuer is the URL of the issuer of OpenID Connect; empty if there is none.
	Issuer string
	// Error says why the last login was refused.
	Error string
	// Notice says that the user is logged out.
	Notice string
	// EndSession is the address at which the session at the issuer ends; empty if there is none.
	EndSession string
}

// RenderLogin returns the HTML of the page. The address of a logout at the issuer has an ID token; no other part has a token.
func RenderLogin(l *Login) ([]byte, error) {
	var whole bytes.Buffer
	if err := templates.ExecuteTemplate(&whole, "login.html", l); err != nil {
		return nil, fmt.Errorf("rendering the page for logging in: %w", err)
	}
	return bytes.Map(printable, whole.Bytes()), nil
}
