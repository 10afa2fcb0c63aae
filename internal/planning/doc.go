// SPDX-License-Identifier: Apache-2.0

// Package planning gathers everything that a remediation plan depends on.
//
// What is planned is decided by pkg/remediate/planner, from values alone. This
// package fetches those values: [Gather] reads a [Source] and gives the
// planner.Input of one policy.
//
//	           ┌ World: Baselines, plans, guards, Environments, defaults
//	Source ────┤ Object: labels, managers, readiness, body of one object
//	           └ Body, Plan: one stored body, one plan
//	   │
//	Gather ──▶ planner.Input ──▶ planner.Make, or package explain
//
// There are two Sources. [FromCache] is the assessor's: its caches, and the
// objects as its watch has them. [Live] reads everything when it is asked, with
// the rights of the person who asks; a preview and an explanation use it, and read its
// World a single time ([Once]).
//
// What cannot be read is never guessed. A drift whose object cannot be read, or
// is no longer what its Baseline speaks of, has the state Unknown, and the planner
// leaves it alone; an object whose readiness is not known counts neither as
// healthy nor as ill.
package planning
