// SPDX-License-Identifier: Apache-2.0

// Package prometheus asks a real Prometheus, as the gates of a rollout do: one number, no number,
// many numbers, a Prometheus that hangs, and one that is away.
//
// `make delivery-long` runs it.
package prometheus
