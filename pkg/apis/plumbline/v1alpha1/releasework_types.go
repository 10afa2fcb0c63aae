// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReleaseWorkVerb is the executor's order.
// +kubebuilder:validation:Enum=CreateClone;Scale;UpdateBaseline;HoldMinReplicas
// +kubebuilder:validation:MaxLength=32
type ReleaseWorkVerb string

// The verbs.
const (
	// WorkCreateClone makes the clone of a variation, or brings the clone of an earlier run to
	// the body that the release gives now.
	WorkCreateClone ReleaseWorkVerb = "CreateClone"
	// WorkScale sets the replicas of the clone, or of a group.
	WorkScale ReleaseWorkVerb = "Scale"
	// WorkUpdateBaseline changes the stable variation's Deployment as the clone was changed.
	WorkUpdateBaseline ReleaseWorkVerb = "UpdateBaseline"
	// WorkHoldMinReplicas raises minReplicas of the HorizontalPodAutoscaler of a variation, or, with 0
	// replicas, restores the former value.
	WorkHoldMinReplicas ReleaseWorkVerb = "HoldMinReplicas"
)

// ReleaseWorkPhase is how far a work is.
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Refused;Failed
// +kubebuilder:validation:MaxLength=16
type ReleaseWorkPhase string

// The phases of a work. The last three are final.
const (
	// WorkPending: the work waits, and has not written; reason has the cause.
	WorkPending ReleaseWorkPhase = "Pending"
	// WorkRunning: the executor is about to write, or has written and not said so.
	WorkRunning ReleaseWorkPhase = "Running"
	// WorkSucceeded: a live read after the write found the content of the work.
	WorkSucceeded ReleaseWorkPhase = "Succeeded"
	// WorkRefused: the executor did not write; reason says why.
	WorkRefused ReleaseWorkPhase = "Refused"
	// WorkFailed: the executor wrote, and the target is not as it should be; or it could not
	// write.
	WorkFailed ReleaseWorkPhase = "Failed"
)

// ReleaseWorkReason says why a work waits, or ended as it did.
// +kubebuilder:validation:Enum=ReleaseGone;ReleaseReplaced;ReleaseDeleted;RunOver;InvalidSpec;BaselineGone;BaselineChanged;CloneGone;NotOwned;GitOpsOwned;NotAllowed;RequesterNotTrusted;TargetClaimed;Halted;Queued;WouldNotConverge;WriteRefused;TargetMoved;Terminating;Unreadable;AutoscalerMissing;AutoscalerAmbiguous;AutoscalerTooSmall;AutoscalerControlled;GroupGone;GroupChanged;GroupAutoscaled;CapacityShort;TooManyReplicas;EvidenceUnavailable
// +kubebuilder:validation:MaxLength=32
type ReleaseWorkReason string

// The reasons.
const (
	// WorkReleaseGone: the release does not exist.
	WorkReleaseGone ReleaseWorkReason = "ReleaseGone"
	// WorkReleaseReplaced: another release has its name.
	WorkReleaseReplaced ReleaseWorkReason = "ReleaseReplaced"
	// WorkReleaseDeleted: the release is being deleted.
	WorkReleaseDeleted ReleaseWorkReason = "ReleaseDeleted"
	// WorkRunOver: the run of the work is not the run that the release is at.
	WorkRunOver ReleaseWorkReason = "RunOver"
	// WorkInvalidSpec: the release gives no body that can be written; message tells the field.
	WorkInvalidSpec ReleaseWorkReason = "InvalidSpec"
	// WorkBaselineGone: the stable variation's Deployment does not exist.
	WorkBaselineGone ReleaseWorkReason = "BaselineGone"
	// WorkBaselineChanged: the pod template of that Deployment is not the expected one.
	WorkBaselineChanged ReleaseWorkReason = "BaselineChanged"
	// WorkCloneGone: the clone that is to be scaled does not exist.
	WorkCloneGone ReleaseWorkReason = "CloneGone"
	// WorkNotOwned: another object has the name of the clone.
	WorkNotOwned ReleaseWorkReason = "NotOwned"
	// WorkGitOpsOwned: a tool of GitOps owns the Deployment that is to be updated.
	WorkGitOpsOwned ReleaseWorkReason = "GitOpsOwned"
	// WorkNotAllowed: the requester, or the executor, may not write it.
	WorkNotAllowed ReleaseWorkReason = "NotAllowed"
	// WorkRequesterNotTrusted: a guard of a written object does not trust the author of the
	// release, so the write would be drift.
	WorkRequesterNotTrusted ReleaseWorkReason = "RequesterNotTrusted"
	// WorkTargetClaimed: a RemediationPlan holds the target.
	WorkTargetClaimed ReleaseWorkReason = "TargetClaimed"
	// WorkHalted: a RemediationLedger of the namespace is halted.
	WorkHalted ReleaseWorkReason = "Halted"
	// WorkQueued: an earlier work of the release has not ended.
	WorkQueued ReleaseWorkReason = "Queued"
	// WorkWouldNotConverge: a dry run of the write leads elsewhere.
	WorkWouldNotConverge ReleaseWorkReason = "WouldNotConverge"
	// WorkWriteRefused: the API server refused the write for good.
	WorkWriteRefused ReleaseWorkReason = "WriteRefused"
	// WorkTargetMoved: another writer changed the target after the executor wrote it.
	WorkTargetMoved ReleaseWorkReason = "TargetMoved"
	// WorkTerminating: the target, or its namespace, is being deleted.
	WorkTerminating ReleaseWorkReason = "Terminating"
	// WorkUnreadable: the API server does not answer a read.
	WorkUnreadable ReleaseWorkReason = "Unreadable"
	// WorkAutoscalerMissing: no HorizontalPodAutoscaler scales the variation.
	WorkAutoscalerMissing ReleaseWorkReason = "AutoscalerMissing"
	// WorkAutoscalerAmbiguous: several HorizontalPodAutoscalers scale the variation.
	WorkAutoscalerAmbiguous ReleaseWorkReason = "AutoscalerAmbiguous"
	// WorkAutoscalerTooSmall: maxReplicas is below the need of the run.
	WorkAutoscalerTooSmall ReleaseWorkReason = "AutoscalerTooSmall"
	// WorkAutoscalerControlled: another object, such as a ScaledObject, keeps the autoscaler.
	WorkAutoscalerControlled ReleaseWorkReason = "AutoscalerControlled"
	// WorkGroupGone: a group of the release does not exist.
	WorkGroupGone ReleaseWorkReason = "GroupGone"
	// WorkGroupChanged: the pod template of the group is not the expected one.
	WorkGroupChanged ReleaseWorkReason = "GroupChanged"
	// WorkGroupAutoscaled: a HorizontalPodAutoscaler scales a group.
	WorkGroupAutoscaled ReleaseWorkReason = "GroupAutoscaled"
	// WorkCapacityShort: with the work both groups would have too few ready pods.
	WorkCapacityShort ReleaseWorkReason = "CapacityShort"
	// WorkTooManyReplicas: the work asks for more replicas than both groups had together.
	WorkTooManyReplicas ReleaseWorkReason = "TooManyReplicas"
	// WorkEvidenceUnavailable: no signed record can be stored, and the executor does not write
	// without one.
	WorkEvidenceUnavailable ReleaseWorkReason = "EvidenceUnavailable"
)

// ReleaseWorkSpec is the discovery server's order to the executor. It has no body: the executor
// takes the body from the release and the stable variation.
//
// +kubebuilder:validation:XValidation:rule="(self.verb != 'UpdateBaseline') == has(self.replicas)",message="CreateClone, Scale and HoldMinReplicas say how many replicas, UpdateBaseline does not",fieldPath=".replicas"
type ReleaseWorkSpec struct {
	// releaseName is the ABRelease of this namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ReleaseName string `json:"releaseName,omitempty"`
	// releaseUID is the UID of the ABRelease.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ReleaseUID string `json:"releaseUID,omitempty"`
	// run is the run that the work belongs to.
	// +required
	// +kubebuilder:validation:Minimum=1
	Run int64 `json:"run,omitempty"`
	// number is the number of the work within the run, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number,omitempty"`
	// verb is the verb that is asked for.
	// +required
	Verb ReleaseWorkVerb `json:"verb,omitempty"`
	// variation is the variation of the clone or group, or, of HoldMinReplicas, the variation
	// that the autoscaler scales.
	// +required
	Variation VariationName `json:"variation,omitempty"`
	// replicas are the replicas of the clone or group, or the least replicas that the
	// autoscaler is to keep. 0 of HoldMinReplicas restores the former minimum.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Replicas *int32 `json:"replicas,omitempty"`
	// expectedHash is the canonical hash of the stable variation's pod template, or of the pod template
	// of the group that is scaled. With any other template the executor refuses the work, except a
	// Scale to 0 or of a run that has ended, and HoldMinReplicas.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ExpectedHash string `json:"expectedHash,omitempty"`
}

// ReleaseWorkTargetKind is the kind of an object that works write.
// +kubebuilder:validation:Enum=Deployment;HorizontalPodAutoscaler
type ReleaseWorkTargetKind string

// The kinds.
const (
	// WorkTargetDeployment is a Deployment of apps/v1.
	WorkTargetDeployment ReleaseWorkTargetKind = "Deployment"
	// WorkTargetAutoscaler is a HorizontalPodAutoscaler of autoscaling/v2.
	WorkTargetAutoscaler ReleaseWorkTargetKind = "HorizontalPodAutoscaler"
)

// ReleaseWorkTarget is the object that a work is about.
type ReleaseWorkTarget struct {
	// kind is the kind of the object.
	// +required
	Kind ReleaseWorkTargetKind `json:"kind,omitempty"`
	// name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid is the UID of the object; absent until the object exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
}

// ReleaseWorkIntent is the write that a work is about to make, stored before it.
type ReleaseWorkIntent struct {
	// uid is the UID of the target; absent when it is to be made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// resourceVersion is the resourceVersion of the target that the write is bound to; absent
	// when it is to be made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// templateHash is the canonical hash of the pod template that the write leaves; absent of
	// HoldMinReplicas.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	TemplateHash string `json:"templateHash,omitempty"`
	// storageTime is when the intent was stored.
	// +required
	StorageTime metav1.Time `json:"storageTime,omitempty,omitzero"`
}

// ReleaseWorkResult is the target after the executor's write.
type ReleaseWorkResult struct {
	// resourceVersion is the resourceVersion of the target with the write, or a later one if
	// origin is Recovered.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// origin says how the executor knows of the write.
	// +required
	Origin ResultOrigin `json:"origin,omitempty"`
}

// HeldAutoscaler is a HorizontalPodAutoscaler with minReplicas that the executor has raised.
type HeldAutoscaler struct {
	// name is the name of the autoscaler.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid is the UID of the autoscaler.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// formerMinReplicas is the value that is restored.
	// +required
	// +kubebuilder:validation:Minimum=0
	FormerMinReplicas *int32 `json:"formerMinReplicas,omitempty"`
	// minReplicas is the minimum of replicas that is held. Another value is that of another
	// writer, and stays.
	// +required
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`
}

// ReleaseWorkStatus is how far a work is.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.phase) || !(oldSelf.phase in ['Succeeded', 'Refused', 'Failed']) || (has(self.phase) && self.phase == oldSelf.phase)",message="a work that has ended stays so",fieldPath=".phase"
type ReleaseWorkStatus struct {
	// observedGeneration is the generation the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is the phase of the work; absent until the executor looks at it.
	// +optional
	Phase ReleaseWorkPhase `json:"phase,omitempty"`
	// reason is the reason of the phase.
	// +optional
	Reason ReleaseWorkReason `json:"reason,omitempty"`
	// message is a sentence for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// startTime is when the executor first looked at the work.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when the work ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// targetRef is the object that the work is about.
	// +optional
	TargetRef *ReleaseWorkTarget `json:"targetRef,omitempty"`
	// templateHash is the canonical hash of the target's pod template after the work.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	TemplateHash string `json:"templateHash,omitempty"`
	// intent is the intent of the work, from the phase Running on.
	// +optional
	Intent *ReleaseWorkIntent `json:"intent,omitempty"`
	// groupReplicas are those of both groups together when the run started, as the executor has read
	// them at the first work of the run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	GroupReplicas *int32 `json:"groupReplicas,omitempty"`
	// result is the result of the write; absent if the executor found no write of its own.
	// +optional
	Result *ReleaseWorkResult `json:"result,omitempty"`
	// held is the autoscaler that a work HoldMinReplicas changes, from the phase Running on.
	// +optional
	Held *HeldAutoscaler `json:"held,omitempty"`
}

// ReleaseWork asks the executor for one write to a workload of a release. The discovery server
// creates works; the executor carries them out with the right of the release's author.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=releaseworks,categories=plumbline,shortName=rwork
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.spec.releaseName`
// +kubebuilder:printcolumn:name="Run",type=integer,JSONPath=`.spec.run`
// +kubebuilder:printcolumn:name="Verb",type=string,JSONPath=`.spec.verb`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.targetRef.name`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ReleaseWork struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the order; immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a ReleaseWork is immutable; create another"
	Spec ReleaseWorkSpec `json:"spec,omitzero"`
	// status is how far the work is.
	// +optional
	Status ReleaseWorkStatus `json:"status,omitempty,omitzero"`
}

// ReleaseWorkList is a list of ReleaseWorks.
// +kubebuilder:object:root=true
type ReleaseWorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ReleaseWork `json:"items"`
}
