// SPDX-License-Identifier: Apache-2.0

// Package receive is Envoy's metrics service: proxies send to it what they count, and
// [signals.Accumulator] adds it up.
//
//	Envoy ──TLS, gRPC──▶ stream ──▶ decode by hand ──▶ Accumulator ──▶ Service, Cells
//	                       │ token
//	                       ▼
//	                   Directory: whose it is, and which clusters it has
//
// It is a second service of the server that sends proxies their routes, on the same
// port and with the same tokens, see package serve: its codec lets a message decode
// itself. Each stream begins with a node of some sixty kilobytes of which nothing is
// read, and each message has one family for each number; so of a message only numbers
// remain, without an allocation for what is skipped.
//
// A proxy is believed what it counts of the slots that it was given, and of no others:
// what else it tells is left out and counted as [ReasonCluster]. A stream ends with its
// pod.
//
// Adapter. It uses Envoy types and the network.
package receive
