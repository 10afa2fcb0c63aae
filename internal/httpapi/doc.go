// SPDX-License-Identifier: Apache-2.0

// Package httpapi serves the REST API: the objects of package wire at the paths of the published
// designs, described by an OpenAPI document that is made from the same table of operations.
//
// A request passes
//
//	Protect ──▶ the door ──▶ mux ──▶ operation ──▶ Cluster
//
// [Protect] bounds the requests of browsers. A door knows the caller: internal/console has the door of
// the plugin. An operation reads and writes by [Cluster] with the rights of the caller, and has no rights of its
// own. All errors are problems of RFC 9457 ([wire.Problem]).
//
// A stream of events has no end, and no operation of its own:
//
//	Cluster ──▶ feed, of one caller ──▶ ring of package events ──▶ streams
//
// A write is an action of internal/actions in the name of the caller, as the plugin sends it.
package httpapi
