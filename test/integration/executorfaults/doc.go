// SPDX-License-Identifier: Apache-2.0

// Package executorfaults kills, stops, cuts off and starves the executor as a
// process of its own, on a real API server, and judges what is left by the API
// server's audit log, the ledgers and the signed records.
//
// The binary is built with the tag failpoints, so that it dies or stops at the very
// write that a test names (cmd/assessor/failpoint.go). main_test.go starts
// everything; the other files have one sort of fault each.
package executorfaults
