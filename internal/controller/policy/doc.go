// SPDX-License-Identifier: Apache-2.0

// Package policy makes remediation plans.
//
// A [Reconciler] looks at one RemediationPolicy whenever the drift of its
// Environment changes, a plan ends, or its time has come: it gathers what the
// policy depends on (internal/planning), lets pkg/remediate/planner decide, makes
// the plans, and tells in the policy's status what it waits for. It writes no
// guarded object; what becomes of a plan is the executor's.
//
//	Baselines ─┐                                  ┌─▶ RemediationPlans (mode Active)
//	plans ─────┼─ settle ─▶ Gather ─▶ Make ───────┤
//	guards ────┤                                  └─▶ RemediationPolicy.status
//	clock ─────┘
//
// A plan's name follows from what it is for, and what is under way is read live
// before one is made, so two assessors, or one with a cache that lags, neither make
// a plan twice nor more than one operation may have.
//
// [Retention] removes plans that ended long ago.
package policy
