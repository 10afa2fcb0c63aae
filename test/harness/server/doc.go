// SPDX-License-Identifier: Apache-2.0

// Package server starts the processes that tests work with on loopback: our own
// binaries ([Build], [Start]) and a real redis-server ([StartRedis], or
// [StartRedisWith] for one with the arguments of the chart).
package server
