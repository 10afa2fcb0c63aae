// SPDX-License-Identifier: Apache-2.0

// Package poll waits in tests for what another process brings about: [Until] a
// check passes, or [True] for a plain condition. Each package of tests has a limit
// of its own, generous because the machine is shared.
//
// The demo and the end-to-end tests, which show what they see on the way, have
// harness.Eventually.
package poll
