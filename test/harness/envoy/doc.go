// SPDX-License-Identifier: Apache-2.0

// Package envoy runs real Envoys in tests: the one of the chart (`bin/cluster which
// envoy`) or the oldest that is served (`bin/cluster which envoy-oldest`).
// [Start] starts one that gets all of its configuration from a discovery server, over
// TLS and with a token, as a sidecar does; [NewServing] makes the certificate of that
// server.
package envoy
