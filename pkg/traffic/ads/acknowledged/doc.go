// SPDX-License-Identifier: Apache-2.0

// Package acknowledged knows who has acknowledged which version of a route, and whether a
// decision is thereby in force everywhere.
//
//	streams of a replica ──▶ Index ──▶ Replica ──┐
//	other replicas ────────▶ Index ──▶ Replica ──┼─▶ Judge ──▶ Observation
//	Pods that have to acknowledge ────────▶ Wanted ──┘
//
// An [Index] holds, for each proxy of a replica, what it has of the routes that
// somebody decides about: those whose version has a sequence. One for each other
// replica is kept up to date with what has changed there ([Index.Since],
// [Index.Merge]). [Judge] says what follows: it is a function of its [Question] alone.
//
// A proxy between two streams still has what it has acknowledged, and a tenth of a
// percent of all proxies are between two streams at any time, since connections end
// by age. So what a proxy has acknowledged counts until it reports on its next stream,
// for the time of [Absence] at most. After that it is one that has not acknowledged.
//
// A replica that is not heard proves nothing: whoever is not seen elsewhere is
// unknown, and still has to acknowledge.
package acknowledged
