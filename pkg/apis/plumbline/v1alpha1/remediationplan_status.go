// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PlanPhase is how far a plan is.
// +kubebuilder:validation:Enum=Created;Scheduled;Deferred;Running;Paused;Sealing;Succeeded;PartialSuccess;Failed;Canceled;Superseded;Skipped
// +kubebuilder:validation:MaxLength=16
type PlanPhase string

// The phases of a plan. The last six are final.
const (
	// PlanCreated: the executor has not looked at it yet.
	PlanCreated PlanPhase = "Created"
	// PlanScheduled: it waits for its time.
	PlanScheduled PlanPhase = "Scheduled"
	// PlanDeferred: a limit, the window or a brake holds it back; deferralReason says which.
	PlanDeferred PlanPhase = "Deferred"
	// PlanRunning: its steps are carried out.
	PlanRunning PlanPhase = "Running"
	// PlanPaused: a person asked to begin no further step.
	PlanPaused PlanPhase = "Paused"
	// PlanSealing: it was asked to end, and it is made sure that no write is under way.
	PlanSealing PlanPhase = "Sealing"
	// PlanSucceeded: every target is as desired.
	PlanSucceeded PlanPhase = "Succeeded"
	// PlanPartialSuccess: some are.
	PlanPartialSuccess PlanPhase = "PartialSuccess"
	// PlanFailed: no target is.
	PlanFailed PlanPhase = "Failed"
	// PlanCanceled: a person, or a halted policy, ended it.
	PlanCanceled PlanPhase = "Canceled"
	// PlanSuperseded: its reason does not hold any more.
	PlanSuperseded PlanPhase = "Superseded"
	// PlanSkipped: it did not write, because each target was blocked; the reasons of its steps
	// have the causes.
	PlanSkipped PlanPhase = "Skipped"
)

// StepState is how far a step is.
// +kubebuilder:validation:Enum=Planned;Reserved;Intent;Applied;Verified;Skipped;Failed;Fenced
// +kubebuilder:validation:MaxLength=16
type StepState string

// The states of a step. The last four are final.
const (
	// StepPlanned: the step has not begun.
	StepPlanned StepState = "Planned"
	// StepReserved: the ledger granted it.
	StepReserved StepState = "Reserved"
	// StepIntent: it is about to write, or has written and not said so.
	StepIntent StepState = "Intent"
	// StepApplied: it has written.
	StepApplied StepState = "Applied"
	// StepVerified: the target is as desired, and healthy.
	StepVerified StepState = "Verified"
	// StepSkipped: it did not write; reason has the cause.
	StepSkipped StepState = "Skipped"
	// StepFailed: it wrote, and the target is not as it should be; or it could not write.
	StepFailed StepState = "Failed"
	// StepFenced: it was stopped before its write could be stored.
	StepFenced StepState = "Fenced"
)

// StepReason says why a step was skipped or failed.
// +kubebuilder:validation:Enum=TargetMoved;TargetReplaced;Contended;AlreadyDesired;WouldNotConverge;Terminating;NotAllowed;RevisionDamaged;Claimed;Unhealthy;Refused;DeadlineExceeded;Stopped;PolicyChanged;AboveMaximumAge;BlastRadius;BelowSeverity;NoStandby
type StepReason string

// The reasons of a step's end.
const (
	// ReasonTargetMoved: the target is neither as it was nor as it should be.
	ReasonTargetMoved StepReason = "TargetMoved"
	// ReasonTargetReplaced: it is gone, or another object has its name.
	ReasonTargetReplaced StepReason = "TargetReplaced"
	// ReasonTargetContended: another writer writes it again and again.
	ReasonTargetContended StepReason = "Contended"
	// ReasonAlreadyDesired: it is as it should be.
	ReasonAlreadyDesired StepReason = "AlreadyDesired"
	// ReasonWouldNotConverge: a dry run of the write leads elsewhere.
	ReasonWouldNotConverge StepReason = "WouldNotConverge"
	// ReasonTerminating: it, or its namespace, is being deleted.
	ReasonTerminating StepReason = "Terminating"
	// ReasonNotAllowed: the requester, or the executor, may not write it.
	ReasonNotAllowed StepReason = "NotAllowed"
	// ReasonRevisionDamaged: the authorized body does not have its hash.
	ReasonRevisionDamaged StepReason = "RevisionDamaged"
	// ReasonClaimed: another plan holds the target.
	ReasonClaimed StepReason = "Claimed"
	// ReasonUnhealthy: it was written and did not become ready in time.
	ReasonUnhealthy StepReason = "Unhealthy"
	// ReasonRefused: the API server refused the write for good.
	ReasonRefused StepReason = "Refused"
	// ReasonDeadlineExceeded: the plan's time was over, or that of a creation.
	ReasonDeadlineExceeded StepReason = "DeadlineExceeded"
	// ReasonStopped: an earlier step failed, or the plan was ended.
	ReasonStopped StepReason = "Stopped"
	// ReasonPolicyChanged: the policy of the plan has changed since the plan was made.
	ReasonPolicyChanged StepReason = "PolicyChanged"
	// ReasonAboveMaximumAge: the drift became older than the policy remediates by itself.
	ReasonAboveMaximumAge StepReason = "AboveMaximumAge"
	// ReasonBlastRadius: the plan has written as many targets as one operation may have.
	ReasonBlastRadius StepReason = "BlastRadius"
	// ReasonBelowSeverity: the drift became milder than the policy remediates by itself.
	ReasonBelowSeverity StepReason = "BelowSeverity"
	// ReasonNoStandby: no standby could answer the requests of the target while it is repaired.
	ReasonNoStandby StepReason = "NoStandby"
)

// StepIntentRecord is the write that a step is about to make, stored before it.
type StepIntentRecord struct {
	// epoch is the epoch of the executor that wrote it.
	// +required
	// +kubebuilder:validation:Minimum=1
	Epoch int64 `json:"epoch,omitempty"`
	// uid is the UID of the target; empty when it is to be made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// resourceVersion is the resourceVersion of the target that the write is bound to.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// generation is the generation of the target before it. While that stays, no user has
	// written its spec.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`
	// preHash is the target's guarded hash before it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PreHash string `json:"preHash,omitempty"`
	// ddem002Hash is the hash of DD-EM-002 of the target before it; absent unless the policy
	// asks for it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DDEM002Hash string `json:"ddem002Hash,omitempty"`
	// artifacts are the artifacts of the write.
	// +optional
	Artifacts StepArtifacts `json:"artifacts,omitzero"`
	// storageTime is when it was stored.
	// +required
	StorageTime metav1.Time `json:"storageTime,omitempty,omitzero"`
}

// ResultOrigin says how it is known that a write was stored.
// +kubebuilder:validation:Enum=Response;Recovered
type ResultOrigin string

// The origins of a result.
const (
	// ResultResponse: the API server answered so.
	ResultResponse ResultOrigin = "Response"
	// ResultRecovered: the answer was lost, and the target is as the write leaves it.
	ResultRecovered ResultOrigin = "Recovered"
)

// StepResult is the target after a step's write.
type StepResult struct {
	// resourceVersion is the resourceVersion of the target after the write.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// hash is the target's guarded hash after it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`
	// ddem002Hash is the hash of DD-EM-002 of the target after it; absent unless the policy
	// asks for it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DDEM002Hash string `json:"ddem002Hash,omitempty"`
	// uid is the UID of the target after the write.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// generation is the generation of the target after it; absent for a kind without
	// generations.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation,omitempty"`
	// origin says how it is known.
	// +required
	Origin ResultOrigin `json:"origin,omitempty"`
	// recordTime is when it was recorded.
	// +required
	RecordTime metav1.Time `json:"recordTime,omitempty,omitzero"`
}

// StepEffect is the result of a step's assessment, as the executor copied it.
type StepEffect struct {
	// verdict says whether the write helped.
	// +required
	Verdict EffectVerdict `json:"verdict,omitempty"`
	// score is the score in basis points; absent if no component has one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Score *int32 `json:"score,omitempty"`
	// assessmentName names the EffectivenessAssessment, in the namespace of the plan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	AssessmentName string `json:"assessmentName,omitempty"`
	// breakerState is the state of the policy's circuit breaker after the verdict. It is absent
	// if the step was not the probe of a breaker.
	// +optional
	BreakerState BreakerState `json:"breakerState,omitempty"`
	// evidence names the signed record of the assessment; absent in effects of earlier releases.
	// +optional
	Evidence *StepEvidence `json:"evidence,omitempty"`
}

// PlanStep is how far one target is.
//
// +kubebuilder:validation:XValidation:rule="self.state == oldSelf.state || oldSelf.state == 'Planned' || oldSelf.state == 'Reserved' || (oldSelf.state == 'Intent' && self.state != 'Reserved') || (oldSelf.state == 'Applied' && (self.state == 'Verified' || self.state == 'Failed'))",message="a step goes back to Planned alone, and no more once it has written; one that has ended stays so",fieldPath=".state"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.effect) || (has(self.effect) && self.effect == oldSelf.effect)",message="a verdict stays",fieldPath=".effect"
type PlanStep struct {
	// index is the index of the target.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	Index int32 `json:"index"`
	// state is the state of the step. It never goes back, but from Reserved or Intent to
	// Planned. A step that is deferred gives its place back, and its intent can no longer be
	// stored.
	// +required
	State StepState `json:"state,omitempty"`
	// reason is the reason of its end.
	// +optional
	Reason StepReason `json:"reason,omitempty"`
	// message is a sentence for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// attempts is the number of attempts to write.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Attempts int32 `json:"attempts,omitempty"`
	// intent is the intent of the step, from the state Intent on.
	// +optional
	Intent *StepIntentRecord `json:"intent,omitempty"`
	// fence is the target's resourceVersion after a write that keeps the intended
	// one from being stored later.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Fence string `json:"fence,omitempty"`
	// result is the result of the step, from the state Applied on.
	// +optional
	Result *StepResult `json:"result,omitempty"`
	// standby answers the requests of the target while the target is repaired; absent but with the
	// strategy BlueGreen.
	// +optional
	Standby *StepStandby `json:"standby,omitempty"`
	// healthyTime is since when the target is as desired and ready.
	// +optional
	HealthyTime *metav1.Time `json:"healthyTime,omitempty"`
	// settled says that the ledger knows how it ended.
	// +optional
	Settled Toggle `json:"settled,omitempty"`
	// evidence is the signed record of the step.
	// +optional
	Evidence *StepEvidence `json:"evidence,omitempty"`
	// effect is the effect of its write; absent while the effect is measured, and where no
	// effect is.
	// +optional
	Effect *StepEffect `json:"effect,omitempty"`
	// startTime is when it was granted; absent again once a step that was deferred has given
	// its place back.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when it ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// logs are the events of the step, oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Logs []string `json:"logs,omitempty"`
}

// PlanCounts counts the steps of a plan by how they ended.
type PlanCounts struct {
	// total is the number of all steps.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`
	// succeeded is the number of succeeded steps: verified, or already as desired.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Succeeded int32 `json:"succeeded"`
	// failed is the number of failed steps.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failed int32 `json:"failed"`
	// skipped is the number of skipped steps, fenced ones included.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Skipped int32 `json:"skipped"`
}

// RemediationPlanStatus is how far a plan is.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.epoch) || (has(self.epoch) && self.epoch >= oldSelf.epoch)",message="an executor of before may not write"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.phase) || !(oldSelf.phase in ['Succeeded', 'PartialSuccess', 'Failed', 'Canceled', 'Superseded', 'Skipped']) || (has(self.phase) && self.phase == oldSelf.phase)",message="a plan that has ended stays so"
type RemediationPlanStatus struct {
	// conditions are Ready, Announced, and Reconciling or Stalled while they are True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is the phase of the plan.
	// +optional
	Phase PlanPhase `json:"phase,omitempty"`
	// epoch counts the executors that took the plan over.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Epoch int64 `json:"epoch,omitempty"`
	// holder is the executor that has it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Holder string `json:"holder,omitempty"`
	// deferralReason is the cause of a wait, in words.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	DeferralReason string `json:"deferralReason,omitempty"`
	// resumeTime is when it is looked at again, where that is known.
	// +optional
	ResumeTime *metav1.Time `json:"resumeTime,omitempty"`
	// endingAs is the phase that follows Sealing.
	// +optional
	EndingAs PlanPhase `json:"endingAs,omitempty"`
	// endedBy is the user that ended it before its time.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	EndedBy string `json:"endedBy,omitempty"`
	// endedReason says why it was ended, or paused, before its time, in words.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	EndedReason string `json:"endedReason,omitempty"`
	// decision is the last one that was recorded and stored.
	// +optional
	Decision *PlanDecision `json:"decision,omitempty"`
	// steps are the steps by the index of their target.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=10
	Steps []PlanStep `json:"steps,omitempty"`
	// effect is the worst verdict on the steps that wrote; absent while the effect of each of them is measured.
	// +optional
	Effect EffectVerdict `json:"effect,omitempty"`
	// counts are the counts of the steps.
	// +optional
	Counts PlanCounts `json:"counts,omitzero"`
	// startTime is when the first step was granted.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when it ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// history has each event of the plan and of its targets once, in the order in which the events
	// were stored. A line stays.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	History []PlanEvent `json:"history,omitempty"`
}
