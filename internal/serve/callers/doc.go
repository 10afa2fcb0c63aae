// SPDX-License-Identifier: Apache-2.0

// Package callers knows whose a bearer token is, by a TokenReview of the API server.
//
// The API server is asked for its own audience first: tokens of OpenID Connect know no other, and a token
// that it takes itself can write. A token that it does not take is good for reading if it has the audience
// [Audience].
//
// An answer is remembered by the SHA-256 of the token for a minute, or until the token ends; a refusal for five
// seconds. A review that cannot be made is an error, and never a caller.
package callers
