// SPDX-License-Identifier: Apache-2.0

// Package envoyxds gives a real Envoy what pkg/traffic/envoyxds makes: first every
// golden set to check, then some to run, between clients and upstreams that see each
// byte. What goes over the discovery service otherwise is written into the bootstrap
// here, so that no server of ours is needed.
//
// The tests have the build tag integration. The environment's ENVOY is the path of
// the binary; without it they are skipped.
package envoyxds
