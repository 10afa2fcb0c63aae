// SPDX-License-Identifier: Apache-2.0

// Package trafficrouter keeps the status of TrafficRouters: whether the spec can be used, the capabilities, and what the
// router said last. Routers are asked by the releases that name them, so a TrafficRouter without releases is asked
// nothing.
//
// Adapter.
package trafficrouter
