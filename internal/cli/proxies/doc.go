// SPDX-License-Identifier: Apache-2.0

// Package proxies is "kubectl plumbline proxies": it asks each replica of the discovery server
// about its proxies.
package proxies
