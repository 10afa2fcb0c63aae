// SPDX-License-Identifier: Apache-2.0

// Package sim is the simulator of remediations: the real executor over an API
// server in memory, with lost, late and doubled messages, crashes anywhere, two
// executors at once, people and bots who interfere, and a Redis that answers
// anything. A seed decides everything, so every run can be had again:
//
//	go test ./test/sim -run TestPromisesHoldWhateverHappens -sim.seed 17 -v
//	go test ./test/sim -sim.seeds 100000
//
// Reading guide: apiserver is the API server, conformance holds it against a real
// one, schedule decides who goes on and what becomes of each message, world has
// the objects, the people and the promises.
package sim
