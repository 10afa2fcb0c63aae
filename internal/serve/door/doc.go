// SPDX-License-Identifier: Apache-2.0

// Package door lets callers with a bearer token or a session in, over the whole mux of the API and the console:
//
//	bounds of an address ──▶ whose token ──▶ bounds of a user ──▶ may it write ──▶ API
//
// A stream of events lasts, so it leaves the bounds of requests, and has its own:
//
//	bounds of an address ──▶ whose token ──▶ streams of an address ──▶ API ──▶ streams of a user
//
// Each refusal is a problem with the headers of [httpapi.Protect]. No token is in a log, a metric or an answer. Each request of
// a known caller that may write has a line in the log.
//
// A header with a token comes before a session. Browsers without a session are led to the page for logging in. With a
// session they send forms of pages and read the REST API, and send no other write.
package door
