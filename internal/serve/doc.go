// SPDX-License-Identifier: Apache-2.0

// Package serve is the role that serves the REST API in the cluster, to callers with a bearer token, and the console to
// browsers with a session.
//
//	TLS port ──▶ door ──▶ console/pages ──▶ httpapi ──▶ cluster ──▶ shared cache, filtered by rights
//	              │                            │         └────▶ API server, with the caller's token
//	              │                            └▶ one feed of events, from watches of the shared cache
//	              ├▶ callers (TokenReview)
//	              └▶ login ──▶ session (sealed cookies), oidc (issuer)
//
// Its account reads the kinds of Plumbline but BaselineRevisions, and asks for TokenReviews and SubjectAccessReviews. It writes no
// object: what a caller asks for is sent with the caller's own token, so the API server decides and its audit log names
// the caller.
package serve
