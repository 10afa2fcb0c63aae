// SPDX-License-Identifier: Apache-2.0

// Package gatewayapi divides requests by the weights of one rule of an HTTPRoute or a GRPCRoute. Adapter.
//
//	split, targets ──[weightsOf]──▶ the weight of each Service
//	route, weights ──[Plan]──▶ a JSON patch of weights, or a [RefusalError]
//	route, weights, state ──[decide]──▶ write, put back, or hold
//	route's status ──[Assess]──▶ the parents that have not accepted the generation
//
// The route belongs to its user. The [Router] replaces weights, and writes no label, no annotation and no owner.
// What has to outlive the process is [State], which the caller stores in the status of the release.
//
// A route tells Accepted and ResolvedRefs of a generation, and never that a proxy applied the generation. So the best
// knowledge is Accepted, which counts after a settle time.
package gatewayapi
