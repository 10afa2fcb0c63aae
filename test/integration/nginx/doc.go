// SPDX-License-Identifier: Apache-2.0

// Package nginx gives a real nginx what internal/connector/nginx makes of our own resources: first every
// golden set to check, then some to run, between clients and upstreams.
//
// The tests have the build tag integration. The environment's NGINX_BINARY is the path of the binary.
package nginx
