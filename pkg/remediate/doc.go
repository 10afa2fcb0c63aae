// SPDX-License-Identifier: Apache-2.0

// Package remediate holds the rules of putting drift back: how much it matters
// (package severity), and, later, which policy applies, what a plan contains
// and what its limits allow.
//
// Everything here is a function from values to values: no client, no clock, no
// goroutine. What is done with a decision is done elsewhere.
package remediate
