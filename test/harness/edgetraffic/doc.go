// SPDX-License-Identifier: Apache-2.0

// Package edgetraffic has the upstreams and the clients of tests with an edge proxy, and a path with a delay
// between the clients and the proxy.
package edgetraffic
