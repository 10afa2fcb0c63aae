// SPDX-License-Identifier: Apache-2.0

// Package oidc logs users in at an issuer of OpenID Connect, by the code flow with PKCE.
//
// Adapter. The issuer is asked for its endpoints at the first login, so an issuer that does not answer keeps no
// process from starting. An ID token counts if the issuer has signed it for this client and this login. Whether
// the API server takes it, is asked elsewhere. No error has a token, a code or a secret.
package oidc
