// SPDX-License-Identifier: Apache-2.0

// Package evidence is "kubectl plumbline evidence": it shows and verifies the signed records
// of remediation.
//
// Records come from their store, and the cluster is asked only how far they must go.
package evidence
