// SPDX-License-Identifier: Apache-2.0

// Package discovery serves proxies with what the cluster says about its Services.
//
//	Services, EndpointSlices, Nodes ──cache──▶ ir.Build ──▶ envoyxds ──▶ Catalog
//	                                  Pace: when                           │ one Group
//	                                                                       ▼ per Scope
//	proxies ──token──▶ Directory ──▶ Scope of the pod ──────────────▶ serve.Server
//
// [Pace] decides when it is worth to look again: at once when somebody has decided,
// soon when endpoints go, a little later for everything else, since changes come in flocks. [Doubt] keeps a view that
// has lost more than half of what there was until a second look says the same.
//
// A [Scope] is what a proxy depends on: the managed Services of its namespace, and
// those that its pod or namespace names in the annotation plumbline.dev/upstreams.
// All proxies with the same dependencies share one group, and so one view.
//
// How requests come to a proxy is its face: a redirected one has a listener for each
// address of a Service, an explicit one those on loopback that its annotation names,
// and a gateway one for all hosts. A gateway is known by its service account.
//
// What is divided, and how, says status.effective of ABReleases, and what is kept from
// requests the quarantine of Baselines; where these kinds are not installed, Services
// are served without. Sequences that outlive a release are read from a ConfigMap. Who
// decides about releases looks through a [Window].
//
// Nothing is published before the caches are synced, and no replica leads: each
// serves what it sees, and all see the same.
package discovery
