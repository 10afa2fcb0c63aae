// SPDX-License-Identifier: Apache-2.0

// Package assessment finds out whether the writes of RemediationPlans helped, in the role assess.
//
//	RemediationPlan ──▶ Opener ──▶ one EffectivenessAssessment for each step that has ended
//
//	assessment, Baseline ──▶ Reconciler ──▶ look at the target ──▶ effect.Next ──▶ ask the sources
//	                                            │                                      │
//	                                            └──────────── one patch ◀──────────────┘
//
// What follows is decided by pkg/effect, from the stored assessment and from what one look has found.
// So an assessor that dies at any write leaves the rest to the next one. An assessment that has ended
// is not looked at again.
//
// Reading guide: spec.go is what is assessed of a step, target.go the look at the target, health.go
// the source that every installation has, stored.go the two directions between the stored form and
// that of pkg/effect. A further source implements [Source].
package assessment
