// SPDX-License-Identifier: Apache-2.0

// Package lift is "kubectl plumbline lift": it ends the quarantine of an object.
package lift
