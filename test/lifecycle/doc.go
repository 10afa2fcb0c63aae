// SPDX-License-Identifier: Apache-2.0

// Package lifecycle takes the webhook through its life on a whole cluster while
// 200 writes/s of guarded Deployments go on: rolling update, fewer and more
// replicas, evictions as a drain makes them, an upgrade of chart and binaries,
// one that fails and is rolled back, no replica at all, removal and reinstallation, and the self-test turned on.
// No call may fail in any of them, and where the webhook is never away none may
// go unstamped.
//
// `make lifecycle` brings the cluster up under a name of its own, and removes it
// after; KEEP=1 leaves it running. The writes are in package writes.
package lifecycle
