// SPDX-License-Identifier: Apache-2.0

package planner

// Reason says in one word why a drift is left out.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	// ReasonNotGuarded: a request names what no guard selects.
	ReasonNotGuarded Reason = "NotGuarded"
	// ReasonNotSelected: a request names what the policy is not about.
	ReasonNotSelected Reason = "NotSelected"
	// ReasonNotDrifted: a request names what is as authorized.
	ReasonNotDrifted Reason = "NotDrifted"
	// ReasonChanged: it is no longer what the person saw who asked.
	ReasonChanged Reason = "Changed"
	// ReasonNoRevision: a request names a state that was never authorized, or is not kept.
	ReasonNoRevision Reason = "NoSuchRevision"
	// ReasonUnmanaged: a guard says that Plumbline never writes it.
	ReasonUnmanaged Reason = "Unmanaged"
	// ReasonSuspended: a guard is suspended.
	ReasonSuspended Reason = "GuardSuspended"
	// ReasonForbiddenKind: its kind gives rights or holds secrets.
	ReasonForbiddenKind Reason = "KindNeverWritten"
	// ReasonUnknown: what it is now could not be read.
	ReasonUnknown Reason = "StateUnknown"
	// ReasonTerminating: it, or its namespace, is being deleted.
	ReasonTerminating Reason = "Terminating"
	// ReasonNothingAuthorized: nobody said what it should be.
	ReasonNothingAuthorized Reason = "NothingAuthorized"
	// ReasonContended: writers fight over it.
	ReasonContended Reason = "Contended"
	// ReasonAccepted: a person asked to authorize its present state.
	ReasonAccepted Reason = "AcceptPending"
	// ReasonMassDrift: so much drifts at once that one cause must be assumed.
	ReasonMassDrift Reason = "MassDrift"
	// ReasonRolloutUnderWay: a run of an ABRelease has it as a variation.
	ReasonRolloutUnderWay Reason = "RolloutUnderWay"
	// ReasonUnderWay: a plan has it already.
	ReasonUnderWay Reason = "UnderWay"
	// ReasonMeasured: the effect of its last repair is being measured.
	ReasonMeasured Reason = "BeingMeasured"
	// ReasonBelowSeverity: it matters less than the policy asks for.
	ReasonBelowSeverity Reason = "BelowMinimumSeverity"
	// ReasonNotifyStage: people are told first, and it is put back when it is older or worse.
	ReasonNotifyStage Reason = "NotifyStage"
	// ReasonNotEscalated: it matters no more than when it was first seen.
	ReasonNotEscalated Reason = "NotEscalated"
	// ReasonTooYoung: it may still be put back by whoever did it.
	ReasonTooYoung Reason = "BelowMinimumAge"
	// ReasonTooOld: a person has to decide.
	ReasonTooOld Reason = "AboveMaximumAge"
	// ReasonAttempts: it was tried often enough; a person has to decide.
	ReasonAttempts Reason = "TooManyAttempts"
	// ReasonChain: repairs of it did not help; a person has to look.
	ReasonChain Reason = "IneffectiveChain"
	// ReasonBackoff: the last plan for it ended without success a moment ago.
	ReasonBackoff Reason = "BackingOff"
	// ReasonPlanRate: the policy has made as many plans as a minute may have.
	ReasonPlanRate Reason = "TooManyPlans"
	// ReasonDone: a plan of the policy has succeeded for it.
	ReasonDone Reason = "AlreadyDone"
	// ReasonCanceled: a person ended a plan for it.
	ReasonCanceled Reason = "Canceled"
	// ReasonNotAllowed: the executor, or the author of the policy, may not write it.
	ReasonNotAllowed Reason = "NotAllowed"
	// ReasonUnattributed: nobody knows who did it.
	ReasonUnattributed Reason = "Unattributed"
	// ReasonGitOps: a GitOps tool puts it back itself.
	ReasonGitOps Reason = "OwnedByGitOps"
	// ReasonActiveWriter: a trusted writer has just changed it.
	ReasonActiveWriter Reason = "TrustedWriterActive"
	// ReasonRecreation: it is gone, and may not be made again.
	ReasonRecreation Reason = "NotRecreated"
	// ReasonNotApplicable: the policy's action does nothing about it.
	ReasonNotApplicable Reason = "ActionNotApplicable"
	// ReasonQuarantined: proxies send it no new requests already.
	ReasonQuarantined Reason = "AlreadyQuarantined"
	// ReasonNeverReady: no authorized state of it was ever ready.
	ReasonNeverReady Reason = "NoReadyRevision"
	// ReasonUnhealthy: too few of the others are healthy to risk it.
	ReasonUnhealthy Reason = "TooFewHealthy"
	// ReasonBlastRadius: one operation has no more room.
	ReasonBlastRadius Reason = "BlastRadius"
)

// Escalates says of a reason that a person has to be told.
func (r Reason) Escalates() bool {
	return r == ReasonTooOld || r == ReasonAttempts || r == ReasonChain || r == ReasonNotAllowed || r == ReasonNotifyStage
}
