// SPDX-License-Identifier: Apache-2.0

// Package connect makes the routers that TrafficRouters describe, one for each release that names them. A router is
// kept until the spec of its TrafficRouter changes: the next look at the release applies the split to the new one.
//
// A type of TrafficRouter has one case in [Registry.makeRouter] and one in [Capabilities].
//
// Adapter.
package connect
