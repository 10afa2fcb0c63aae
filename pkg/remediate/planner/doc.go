// SPDX-License-Identifier: Apache-2.0

// Package planner says which drift a policy puts back now, in which order, and
// why not the rest.
//
// [Make] is one function from values to values: the policy, everything that
// drifted among its objects, what is under way, and the time go in; plans and a
// reason for everything left out come out. The same input gives the same plans,
// byte for byte, in whatever order the drift is given.
//
//	drift ──▶ obstacles ──▶ order ──▶ limits of one operation ──▶ plans by namespace
//	             │                          │
//	             └── left out, with why ────┘
//
// A preview is the same call. What limits a policy over time (so many an hour,
// a cooldown, a breaker) is not looked at here: a plan that finds no place waits,
// and says for what; see package ledger.
package planner
