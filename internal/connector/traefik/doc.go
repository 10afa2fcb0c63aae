// SPDX-License-Identifier: Apache-2.0

// Package traefik says in Traefik's words how the requests of a Service are divided, and reads back what a Traefik does.
//
//	ports, splits, endpoints ──[Render]──▶ the dynamic configuration, which Traefik's HTTP provider polls
//	/api/http/services/NAME@http ──[ReadService]──▶ [State]: sequence and weights in force
//	states of all programs ──[Observe]──▶ traffic.Observation
//	/metrics ──[ReadMetrics]──▶ [Metrics] ──[Metrics.Since]──▶ counts by variation
//	counts, reloads ──[FindStarved]──▶ variations that cannot have their share
//
// A user writes `service: plb_NAMESPACE_SERVICE_PORT@http` in a router of Traefik, or gives a [Route], and Plumbline
// makes the routers. Headers need a Route, because a router of Traefik alone can read headers.
//
// The weighted service of a port has a child for each variation, and one child more with weight 0, whose name has the
// sequence. So one answer of the API tells sequence and weights of the same configuration.
//
// Traefik's weighted round robin is exact, and starts anew with each change of the configuration, also of another
// Service. A change of endpoints is a change too.
package traefik
