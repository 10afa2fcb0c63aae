// SPDX-License-Identifier: Apache-2.0

// Package router is "kubectl plumbline router": it shows TrafficRouters, and checks whether splits can become effective
// there.
package router
