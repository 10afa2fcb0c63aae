// SPDX-License-Identifier: Apache-2.0

// Package records reads the signed records of remediation and releases with what the cluster knows about
// them, so that the plugin and the REST API verify the same:
//
//	the executor ──▶ store ─────────────────────────────┐
//	ConfigMaps ──▶ keys, checkpoints ───────────────────┼──▶ Find ──▶ Found ──▶ packet of a plan
//	RemediationLedgers, RemediationPlans ──▶ heads, plans ┘
//
// A store is not trusted: [Find] verifies each record that it returns. What the cluster knows is read before
// the first record, so that records that are written meanwhile are more than was noted, and never fewer.
package records
