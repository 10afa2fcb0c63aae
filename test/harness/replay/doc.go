// SPDX-License-Identifier: Apache-2.0

// Package replay drives an admission webhook with recorded reviews at a fixed
// rate, and measures.
//
// The load is open: when a request is due does not depend on how the ones
// before it fare, as writers to an API server do not wait for each other. Each
// latency runs from the moment the request was due, so a webhook that stalls
// pays for all that became due meanwhile (no coordinated omission).
//
// Start with Load, which reads the records, and Run. Run is bounded in rate and
// time, and drives loopback addresses only.
package replay
