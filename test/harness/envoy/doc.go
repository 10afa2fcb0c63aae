// SPDX-License-Identifier: Apache-2.0

// Package envoy runs real Envoys in tests, as `bin/cluster which envoy` has them.
// [Start] starts one that gets all of its configuration from a discovery server, over
// TLS and with a token, as a sidecar does; [NewServing] makes the certificate of that
// server.
package envoy
