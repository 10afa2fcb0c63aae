// SPDX-License-Identifier: Apache-2.0

// Package ir makes of Services, EndpointSlices and Pods what a proxy has to know of
// them, in a form that knows no proxy.
//
//	Services, slices, pods, splits ──Build──▶ Mesh: services with ports, slots, endpoints
//	                                          and Problems: what is left alone, and why
//
// A Service is managed when it has the label [Managed] or a split names it. Only its
// ports that are declared HTTP are (see [ProtocolOf]); to everything else nothing is
// done, and the connections of clients go where they always went. What cannot be
// managed without changing what it means, such as a Service with session affinity,
// is refused with a [Problem] that says how to mend it, and left alone as well.
//
// A port has one [Slot] for each variation of the split, or a single one without a
// name. The slots live as long as the split: a weight never makes one.
//
// [Build] is a function of its [Inputs], whose order does not matter. It reads no
// clock and changes none of them. How weights follow from endpoints is
// traffic.Clamp's: the split that is given here is the one in force.
package ir
