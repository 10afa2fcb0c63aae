// SPDX-License-Identifier: Apache-2.0

// Package wire has the objects of the REST API: one type per object, in the words of the
// published designs, with Plumbline's own fields beside theirs.
//
// Names of fields are in camelCase, enum values in lower case with underscores, times are RFC 3339,
// durations are hh:mm:ss, and ids are uids. An object becomes JSON in two steps, and JSON becomes an
// object in the same two:
//
//	kind ──▶ type of this package ──▶ JSON
//	kind ◀── type of this package ◀── JSON
//
// The first step has a function per object ([PolicyOf], [Policy.Spec]). It spells out the fields that the
// designs name otherwise than the kinds do, and leaves fields that are alike to translate, which copies by
// name and converts times, durations, toggles and enums ([Word]). The second step is encoding/json,
// and [Decode] for bodies of requests: it bounds size and depth, and refuses unknown fields by name.
//
// The package has no effects. [Uids] has ids that an object does not know itself, such as the uid of an
// Environment that it names.
package wire
