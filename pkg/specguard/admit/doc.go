// SPDX-License-Identifier: Apache-2.0

// Package admit judges the writes that the API server reviews: it is the adapter between
// package admission, which speaks HTTPS, and the rules of package specguard.
//
// Start with Reviewer: Mutate answers /mutate (the spec-hash stamp, the verdict and
// the record of an update, and the writer stamp where the API server cannot set it
// itself), Validate answers /validate (the verdict and the record of other writes).
// Both are functions of the review, the guard snapshot and the time. Guards keeps the
// snapshot.
//
// Neither ever refuses a write.
//
// docs/reference/admission.md describes the behavior for users.
//
// Adapter. It uses the Kubernetes API, logs, metrics, the clock and goroutines.
package admit
