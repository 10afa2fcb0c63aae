// SPDX-License-Identifier: Apache-2.0

// Package envoyxds says in Envoy's words what package ir says of a mesh.
//
//	one port of a service ──▶ Cluster          per variation, and one more for forced requests
//	                          Endpoints        one for each cluster
//	                          Route            one
//	                          Listener         one for each cluster IP, named by its address
//
//	[Gateway]: all services that have hosts ──▶ one Listener, and one Route for all hosts
//	[LocalListener]: a service and a local port ──▶ Listener, for the route of the service
//
// [ReadPorts] is the inverse, for a proxy that is no Envoy: of clusters, endpoints and routes it
// makes [Port] values. It makes each resource anew of what it has read, and compares: a field that
// differs has the resource refused, so no proxy carries out a part of a resource.
//
// The resources know no proxy, and all share them. [Resources] encodes each version
// once. A version is a hash of what went in and of [revision], never of the encoded
// bytes, which differ between builds (https://protobuf.dev/programming-guides/serialization-not-canonical/):
// replicas of one release agree, and an upgrade sends nothing that has not changed.
//
// What depends on what, so that a weight or an endpoint touches nothing else:
//
//   - A cluster depends on its name alone. It has no dot and no colon, and is
//     therefore its own name in statistics.
//   - A listener depends on its address and the service; that it makes an id for
//     each request is so with and without a split, because a listener that changes
//     drains its connections.
//   - Weights, key, salt and forced requests are the route's alone.
//
// What is fixed for all: no time limit for a request, none for an idle stream, retries of
// requests that were never sent alone, no limits of connections or requests, upgrades to WebSocket, to the
// upstream the protocol of the client, headers and paths as they are. What Envoy does
// all the same: it adds x-forwarded-proto if there is none, a date if the upstream
// sends none, a content-length of 0 to a request that could have a body and has
// none; it answers OPTIONS * with 404, and a method that it does not know or a path
// with a # with 400.
//
// Adapter. It uses Envoy types.
package envoyxds
