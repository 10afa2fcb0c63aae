// SPDX-License-Identifier: Apache-2.0

// Package failpoint kills, stops and disturbs the executor as a process of its own, on a
// real API server ([Main], [Cluster]), and judges what is left by the API server's audit
// log, the ledgers and the signed records ([World.UntilSucceeded]).
//
// The binary is built with the tag failpoints, so that it dies or stops at the very
// write that a test names (cmd/assessor/failpoint.go). [Table] is what the page
// docs/reference/executor-faults.md says of it.
package failpoint
