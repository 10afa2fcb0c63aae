// SPDX-License-Identifier: Apache-2.0

// Package gatewayapi holds the tests of the router by Gateway API, and of releases that name a route, on a real API
// server: with the rights and the policy of the chart, and with the kinds HTTPRoute and GRPCRoute of
// sigs.k8s.io/gateway-api.
package gatewayapi
