// SPDX-License-Identifier: Apache-2.0

// Package progress tells how far the run of an ABRelease is, as values that each way to show a run
// shares.
//
// The functions are pure: the values come from the status of the release and from the time of the
// API server. A value that the status lacks stays empty.
package progress
