// SPDX-License-Identifier: Apache-2.0

// Package admit answers the API server's admission reviews: it is the adapter
// between HTTP and the rules of package specguard.
//
// Start with Reviewer: Mutate answers /mutate (the spec-hash stamp, the verdict and
// the record of an update, and the writer stamp where the API server cannot set it
// itself), Validate answers /validate (the verdict and the record of other writes).
// Both are functions of the review, the guard snapshot and the time. NewHandler puts
// one of them behind HTTP, Guards keeps the snapshot, NewServer serves them.
//
// Neither ever refuses a write. A review that cannot be judged is allowed with the
// verdict "unassessed" and a reason; it is counted and written to the audit log, so
// that it never looks like an object that nobody guards.
//
// NewFailClosed is for a judge of another kind, whose work must not be left out:
// what it cannot judge is denied, with a request to try again. The one that puts
// proxies into pods is in package admission of traffic/inject.
//
// docs/reference/admission.md describes the behavior for users.
package admit
