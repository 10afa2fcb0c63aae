// SPDX-License-Identifier: Apache-2.0

// Package signals has a real Envoy, with the bootstrap of a sidecar, send what it
// counts to the server that sends it its routes. Each kind of request, of failed ones
// above all, is made a known number of times, and just that is counted.
//
// The tests have the build tag integration. The environment's ENVOY is the path of
// the binary; without it they fail.
package signals
