// SPDX-License-Identifier: Apache-2.0

// Package events gives the events of objects, and keeps them for subscribers.
//
//	object ──▶ Of ──▶ News ──▶ Ring ──▶ subscribers
//
// [Of] gives all events of an object, as far as the object tells them. The ids follow from the object, so they
// are the same at each replica and after each restart. [Seen] gives those of them that are new, so an update
// that a watch leaves out loses no event. [Ring] keeps the newest events, and a subscriber is a place in it: it
// has no queue of its own. The ring encodes each event once, and all streams send the same bytes.
//
// The events of a plan and of a release are in the order of the history in their status. A Baseline and a
// policy have no history, so they have the events of their present state alone.
//
// The package has no effects, and its values are for one goroutine.
package events
