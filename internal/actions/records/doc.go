// SPDX-License-Identifier: Apache-2.0

// Package records reads the signed records of remediation and releases with the facts of the cluster about
// them, so that the plugin and the REST API verify the same:
//
//	the executor ──▶ store ─────────────────────────────┐
//	ConfigMaps ──▶ keys, checkpoints ───────────────────┼──▶ Find ──▶ Found ──▶ packet of a plan
//	RemediationLedgers, RemediationPlans ──▶ heads, plans ┘
//
// A store is not trusted: [Find] verifies each record that it returns. The facts of the cluster are read before
// the first record, so that records that are written meanwhile are more than was noted, and never fewer.
package records
