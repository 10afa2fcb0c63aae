// SPDX-License-Identifier: Apache-2.0

// Package ads serves Envoys with their configuration: the aggregated discovery
// service, in its incremental ("delta") form only
// (https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol).
//
//	translation ──▶ View (immutable, shared by all proxies of a scope)
//	                  │ Publish
//	requests ──▶ Stream (one proxy; decides) ──▶ effects: responses, reports
//	                  │ Tick
//	time ────────────┘
//
// A [Resource] is one version of one xDS resource, encoded once for everybody. A
// [View] is all that a scope sees at one moment. A [Stream] decides what its proxy
// is sent and when: it reads no clock, sends nothing and starts no goroutine, so
// that a test can be the network.
//
// What a Stream keeps to:
//
//   - Clusters go before endpoints, these before listeners, these before routes.
//   - A route waits until the proxy has acknowledged endpoints of every cluster that it
//     names, or five seconds; the first one of a new stream never waits, because a
//     starting Envoy opens no listener before all its routes are there.
//   - Every subscription to endpoints is answered at once.
//   - A cluster that goes away waits until no acknowledged route names it, or thirty
//     seconds.
//   - A proxy keeps a route that is gone until it no longer wants the route, and its clusters
//     with it.
//   - Of one type, no more is on the way than a window of bytes and of responses.
//   - What no Envoy has acknowledged yet travels alone: an Envoy that refuses one
//     resource of a response has applied an arbitrary part of it.
//   - What was refused is not sent again until its content changes; the version
//     before it stays.
//   - A version never goes back: what the proxy reports to have is not replaced by
//     one with a lower sequence.
package ads
