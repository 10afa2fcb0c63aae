// SPDX-License-Identifier: Apache-2.0

// Package explanation tells why policies do or do not put drifts back, with the rights of the
// person who asks.
//
// The gates of one drift are those of pkg/remediate/explain; this package gathers their values
// and selects the drifts that a [Question] is about.
package explanation
