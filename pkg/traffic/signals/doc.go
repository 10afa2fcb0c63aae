// SPDX-License-Identifier: Apache-2.0

// Package signals adds up what proxies count of the requests to each variation.
//
//	proxy ──flush──▶ Report ──▶ of the slot: sums per 10 s, and a total ─▶ Service
//	                    │       gaps, requests in flight
//	                    └─────▶ of the slot, by what proxies had acknowledged ─▶ Cell ─▶ Log
//
// A proxy sends every ten seconds what has happened since the last time, a [Flush]:
// counters as differences, histograms as buckets, and how many requests are in flight.
// An [Accumulator] reads no clock and starts no goroutine; who carries it out tells it
// the time, and lets one at a time call it.
//
// # What is not counted plainly
//
// The counters of Envoy hide some of what happens, so [Failed] and [Canceled] are
// derived, flush by flush:
//
//   - A call of gRPC that fails has status 200. Its own status counts, and which of
//     them are faults of the service is in [GRPCStatus]. What the proxy answers
//     itself for want of an endpoint is counted as 503 and as gRPC's Unavailable; it
//     counts once.
//   - A request that runs into the limit of its route has no latency. It counts in the
//     top bucket. If its answer had begun it is no 5xx either, and counts as failed
//     all the same.
//   - Of a request that its client gives up there is no count. What was started and is
//     neither answered nor in flight was given up. A variation that hangs, behind
//     clients with little patience, shows in nothing else.
//   - The first attempt counts. A request that is repeated and then succeeds has
//     failed; with more than one repetition that cannot be told from the counters.
//
// # What is not known is not zero
//
// A flush that is sent while the control plane is away is lost. Each flush bears the
// time of the proxy's clock, so it is known whether one is missing between the last of
// a stream and the first of the next, and that is kept as a [Gap]. What was in flight
// when a proxy was last heard of stays in flight until its pod ends.
//
// # Bounds
//
// See [Config]. Of a single proxy its last flush is known, and what it told in the ten seconds
// that have not ended. The cells that have are kept for [Config.Retention], see [Log].
// `go test -bench Proxies ./pkg/traffic/signals/receive` measures both.
package signals
