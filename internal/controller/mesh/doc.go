// SPDX-License-Identifier: Apache-2.0

// Package mesh serves proxies with what the cluster says about its Services.
//
//	Services, EndpointSlices, Nodes ──cache──▶ ir.Build ──▶ envoyxds ──▶ Catalogue
//	                                  Pace: when                           │ one Group
//	                                                                       ▼ per Scope
//	proxies ──token──▶ Directory ──▶ Scope of the pod ──────────────▶ serve.Server
//
// [Pace] decides when it is worth to look again: at once when endpoints go, a little
// later for everything else, since changes come in flocks. [Doubt] keeps a view that
// has lost more than half of what there was until a second look says the same.
//
// A [Scope] is what a proxy depends on: the managed Services of its namespace, and
// those that its pod or namespace names in the annotation plumbline.dev/upstreams.
// All proxies with the same dependencies share one group, and so one view.
//
// Nothing is published before the caches are synced, and no replica leads: each
// serves what it sees, and all see the same.
package mesh
