// SPDX-License-Identifier: Apache-2.0

// Package routertest tests that a router keeps the promises of [traffic.Router], and has two
// routers in memory for tests of packages that use one. A [Recorder] moves no requests, keeps
// each split that was applied, and observes as the test orders. A [Proxy] is a program that divides
// requests: it counts them, hangs, restarts, and is edited past its routers.
//
// # The suite
//
// [Conform] runs every check that fits a [Maker]. The Maker declares the [traffic.Capabilities] of its
// routers, and begins a [Stand] for each check. The interfaces of the stand decide how much is tested:
//
//	Stand    refusals by name, sequences, removal, the capabilities that the router declares
//	Asker    shares, weight 0, visitors, header map and override
//	Counter  Measure, beside the counts of the clients
//	Holder   requests in flight
//	Loader   no request lost over a hundred steps
//	Faulty   hung, restarted and edited by hand: never a false Proven, and back to the split
//	Orderer  a prepared rollback that comes past the API server
//
// A router that breaks a promise fails the check of that name: tests of this package run the suite on
// routers with one defect each.
package routertest
