// SPDX-License-Identifier: Apache-2.0

// Package disturbed stops, cuts off and starves the executor: answers, targets, Redis, the API
// server, clocks and records.
package disturbed
