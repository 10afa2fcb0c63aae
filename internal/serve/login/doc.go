// SPDX-License-Identifier: Apache-2.0

// Package login gives browsers sessions, and tells the caller of a browser's request.
//
//	pasted token ─────────────────────┐
//	issuer ──▶ code ──▶ ID token ─────┴──▶ TokenReview ──▶ sealed cookies
//	sealed cookies ──▶ token, refreshed near its end ──▶ caller
//
// A session is a token of the user and no right beside it: the API server is asked about the token before the
// session begins, and again for requests of the session. The server keeps no sessions, so each replica
// knows those of all others.
package login
