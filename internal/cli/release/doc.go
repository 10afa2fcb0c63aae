// SPDX-License-Identifier: Apache-2.0

// Package release is "kubectl plumbline release": it shows how far the rollouts of ABReleases are, and
// asks the discovery server to go on, to go back, or to wait.
package release
