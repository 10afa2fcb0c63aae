// SPDX-License-Identifier: Apache-2.0

// Package inprocess runs what a binary runs within a test: [Start] waits until its
// caches are synced, and it is stopped with the test, or by [Process.Halt]. [Log] is
// what it logs to, and [Ahead] a clock that can be set forward for it and, as it sees
// it, for the API server.
package inprocess
