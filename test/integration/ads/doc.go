// SPDX-License-Identifier: Apache-2.0

// Package ads has the tests of our discovery server with real Envoys: the server in
// the test's own process, or in one of its own where it is killed, over TLS; Envoys,
// backends and an open-loop load on loopback. What requests see is the measure: none
// may fail.
//
// The tests have the build tag integration. The environment's ENVOY is the path of
// the binary. With PLUMBLINE_XDS=long, which `make xds-long` sets, there is ten times
// as much of what takes long.
package ads
