// SPDX-License-Identifier: Apache-2.0

// Package redisguard tests the copies of ledgers in Redis (pkg/remediate/redisguard)
// on a real redis-server, which has to be in PATH: that the scripts say what the
// ledger says, and what is left of that when the server is killed, flushed, full,
// slow, replaced by an older one, or written to by somebody else.
//
// The tests have the build tag integration; no API server is needed.
package redisguard
