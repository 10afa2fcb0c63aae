// SPDX-License-Identifier: Apache-2.0

// Package diff is "kubectl plumbline diff": it compares an object with its authorized state.
package diff
