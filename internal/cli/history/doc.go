// SPDX-License-Identifier: Apache-2.0

// Package history is "kubectl plumbline history": it shows the authorized states of an object.
package history
