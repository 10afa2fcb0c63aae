// SPDX-License-Identifier: Apache-2.0

// Package standby decides whether a standby can answer the requests of a Deployment, and computes the
// ABRelease that moves them. The ABRelease has no rollout: its percentages say where all requests go.
package standby
