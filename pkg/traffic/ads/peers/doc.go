// SPDX-License-Identifier: Apache-2.0

// Package peers has replicas of the discovery server tell each other what their
// proxies have acknowledged. A proxy is connected to one of them, and whoever decides
// about a route has to know of all.
//
//	acknowledged.Index ──▶ Server ──gRPC, on the port of the proxies──▶ Follower ──▶ Mirror
//
// A [Server] answers whoever asks and may, with a stream of [Update]s: first
// all that is known, then what changes, as long as nothing does one that is empty
// every second. A [Follower] asks one other replica, again and again. What is told
// wrongly, out of turn, without an end or not at all ends the stream; a replica that
// is not heard for six seconds proves nothing ([Mirror.Heard]). The follower tells each
// replica how old its watches are, and which prepared rollbacks it has ordered ([Order]).
//
// Adapter. It uses the network, random numbers, the clock and goroutines.
package peers
