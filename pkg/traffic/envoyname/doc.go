// SPDX-License-Identifier: Apache-2.0

// Package envoyname names the routes and Envoy clusters that proxies get, and reads the
// names of Envoy clusters again. A proxy counts requests by these names.
package envoyname
