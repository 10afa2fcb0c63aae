// SPDX-License-Identifier: Apache-2.0

// Package comparison prints the differences between two bodies of an object for people: the
// diffs of "kubectl plumbline diff" and "history" ([Writer]).
package comparison
