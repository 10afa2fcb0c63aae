// SPDX-License-Identifier: Apache-2.0

// Package serve is the gRPC server of the aggregated discovery service. What a proxy
// is sent, and when, [ads.Stream] decides; here is what it takes to carry that out.
//
//		Envoy ◀──TLS, gRPC──▶ session ──▶ ads.Stream
//		                        ▲ wakes
//		translation ──Publish──▶ Group (what a scope sees, revision by revision)
//
//	  - A [Group] is the view of one scope. Publishing computes once what changed and
//	    wakes the sessions; each goes over to the newest view by itself, so
//	    nobody who publishes ever waits for a proxy, and a proxy that reads slowly
//	    skips what lies between.
//	  - A session is one stream: one goroutine that reads, and decides what follows. A
//	    session that is woken, by a view or by time, has another one for a moment. One
//	    at a time has the turn. A session keeps no queue; what cannot be sent stays
//	    unsettled in its Stream.
//	  - Requests are decoded by hand (wire.go), because each stream begins with a node
//	    of some sixty kilobytes of which four small fields are of use. Resources were
//	    encoded once, by whoever made them, and responses refer to these bytes.
//	  - [Proofs] remember for all streams which versions some Envoy has acknowledged.
//
// State of the world is not served: a proxy that asks for it is told to ask for
// deltas.
//
// Adapter. It uses the network, the clock and goroutines.
package serve
