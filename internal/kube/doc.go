// SPDX-License-Identifier: Apache-2.0

// Package kube is how the assessor sees guarded objects: a watch per kind that
// keeps every version in order, and a small copy of each object.
//
// Ordinary informers are built for controllers that only care about the present
// state. Drift is different: which write changed a path is only known when the
// version before and the version after that write are both seen. So a [Tracker]
// records every transition of every object, one by one, in the order of the
// watch, and hands them out until they are settled. Where the order was broken
// (a relist, an overflow) the transition says so, and the rules become careful.
//
// Objects are read as raw JSON, never as maps: numbers keep their digits, and an
// object of 20 KiB costs a few KiB, because only the metadata that decides
// something and the compressed canonical body are kept ([Object]).
//
// The memory for content is bounded over all kinds ([Tracker.Retained]). Where no guard
// covers an object, and where a namespace holds more than its share, the object is
// partial ([Object.Partial]): which version there is stays known, and a live read gives
// the content.
//
// Reads have three results. A kind that has not been listed yet, or that may not
// be read, is unknown ([View].Unknown), which is never the same as absent.
package kube
