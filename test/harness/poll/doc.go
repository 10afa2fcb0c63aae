// SPDX-License-Identifier: Apache-2.0

// Package poll waits in tests for what another process brings about: [Until] a
// check passes, or [True] for a plain condition. [Receive] and [Ready] wait for a
// channel. Each package of tests has a limit of its own, generous because the machine
// is shared.
//
// A wait in vain ends the test with what it waited for, how long, and what it saw last.
// Package waits records each wait. [Detection], [Confirmation] and [Takeover] wait for
// the hot paths.
//
// The demo and the end-to-end tests, which show what they see on the way, have
// harness.Eventually.
package poll
