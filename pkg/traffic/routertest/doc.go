// SPDX-License-Identifier: Apache-2.0

// Package routertest has a [traffic.Router] for tests of who uses one: it moves no
// requests, keeps what it was told, and says what the test has it say.
package routertest
