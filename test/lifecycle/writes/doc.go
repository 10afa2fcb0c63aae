// SPDX-License-Identifier: Apache-2.0

// Package writes is a steady stream of writes to Deployments: create, change of
// image and environment, scale and delete, at a fixed rate, each checked against
// what the API server answers. It tells whether something that happens meanwhile
// costs anybody a call.
//
// The loop is open: calls are due at fixed times, and their latency counts from
// then, whether or not earlier ones have been answered. It is bounded: an object
// has one call under way at most, so there are never more calls than objects.
// That also rules out conflicts, since nobody else writes the objects' content.
// Nothing is tried twice: a call that fails has failed.
//
// Start with [Start]; [Driver.Stop] gives the [Report].
package writes
