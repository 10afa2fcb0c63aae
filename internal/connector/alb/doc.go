// SPDX-License-Identifier: Apache-2.0

// Package alb divides requests by the weights of the target groups of one rule, or of the default action of one
// listener, of an Application Load Balancer of AWS. Adapter.
//
//	split, target groups ──[ChooseWeights]──▶ a weight from 0 to 999 for each target group
//	route, weights ──[Plan]──▶ the actions with other weights, or a [RefusalError]
//	state, sequence ──[decideWrite]──▶ write, put back, or hold
//	health of targets ──[findLate]──▶ the target groups that cannot take requests
//	metric data ──[cellsOf]──▶ counts by variation and minute
//
// A route is a rule or a listener. It belongs to its user: the [Router] changes weights, and keeps each other field as
// it was read. The caller stores the [State] of a router in the status of the release.
//
// The API answers before the balancer acts, and never says when the balancer has acted. So the best knowledge is
// Accepted, which counts after a settle time.
package alb
