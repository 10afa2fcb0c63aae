// SPDX-License-Identifier: Apache-2.0

// Package exec carries remediation plans out.
//
// What is done next is decided by package protocol, from the plan as it is stored
// and from what was learned since it was read. An [Executor] asks it, makes the
// one call that it says, tells it what came of that call, and asks again, until
// there is nothing to do or something to wait for. It remembers nothing between
// two runs that would matter if it were lost.
//
//	Carry ──▶ read the plan ──▶ protocol.Next ──▶ one call ──┐
//	                               ▲                         │
//	                               └──────── facts ──────────┘
//
// Reading guide: executor.go is that loop. One file has the calls for each sort of
// effect: brakes.go (what may hold the plan back), idle.go (what a plan that only waits
// reads of that), authorize.go, claim.go, ledgers.go, target.go and targets.go (the object
// itself), record.go and chain.go (evidence). Whatever decides on a write is read live, so
// the client must have no cache.
//
// What is unknown stays unknown: a call that failed, or whose answer was lost, is
// told as such, and the protocol finds out.
//
// Adapter. It uses the Kubernetes API, the network and goroutines.
package exec
