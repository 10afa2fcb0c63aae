// SPDX-License-Identifier: Apache-2.0

// Package adopt is "kubectl plumbline adopt": it shows the objects that a new guard would
// cover, and creates the guard in mode Audit.
//
// The decisions are those of internal/adopt; this package reads the cluster and prints.
package adopt
