// SPDX-License-Identifier: Apache-2.0

// Package preview decides and prints the plans that a policy would make now, and tries
// their writes as dry runs: for "plan preview" and for "remediate --dry-run".
//
// The decision is the assessor's own (internal/planning and pkg/remediate/planner), made
// with the rights of the user. [World] reads what all questions of one command depend on.
package preview
