// SPDX-License-Identifier: Apache-2.0

// Package plan is the controller of RemediationPlans, in the role execute.
//
// It decides nothing: which plan is looked at when is its business, what is done
// is that of pkg/remediate/exec. The [Reconciler] wakes a plan when it, its policy,
// a ledger or a guard changes, and when it said that it wants to be woken.
// [Guards] and [Bodies] read what the executor measures targets by; [Observer]
// turns what was stored into logs, metrics, events and notifications.
package plan
