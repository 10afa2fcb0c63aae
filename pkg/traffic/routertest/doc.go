// SPDX-License-Identifier: Apache-2.0

// Package routertest tests that a router keeps what [traffic.Router] promises, and has two
// routers in memory for tests of what is built on one. A [Recorder] moves no requests, keeps
// what it was told, and says what the test has it say. A [Proxy] says of a request to which
// variation it goes, and knows of the splits only what its routers were told.
package routertest
