// SPDX-License-Identifier: Apache-2.0

// Package issuer is an issuer of OpenID Connect over TLS, in the process of the test: code flow with PKCE, refresh tokens that
// count once, and ID tokens that a test may spoil.
package issuer
