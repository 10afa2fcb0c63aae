// SPDX-License-Identifier: Apache-2.0

// Package haproxy gives a real HAProxy what internal/connector/haproxy makes of our own resources:
// first every golden set to check, then some to run, between clients and upstreams.
//
// The tests have the build tag integration. The environment's HAPROXY and ENVOY are the paths of the
// binaries.
package haproxy
