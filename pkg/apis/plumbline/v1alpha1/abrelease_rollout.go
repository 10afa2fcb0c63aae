// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutStart decides when a new run begins.
// +kubebuilder:validation:Enum=Automatic;Manual
type RolloutStart string

// The ways to start.
const (
	// RolloutStartAutomatic starts a run when the canary has a new revision.
	RolloutStartAutomatic RolloutStart = "Automatic"
	// RolloutStartManual waits for the verb Start.
	RolloutStartManual RolloutStart = "Manual"
)

// UndecidedPolicy decides about a stage with undecided data.
// +kubebuilder:validation:Enum=Hold;Promote;Rollback
type UndecidedPolicy string

// The policies.
const (
	// UndecidedHold holds the percentage until a person decides.
	UndecidedHold UndecidedPolicy = "Hold"
	// UndecidedPromote goes on as if the stage had passed.
	UndecidedPromote UndecidedPolicy = "Promote"
	// UndecidedRollback rolls the run back.
	UndecidedRollback UndecidedPolicy = "Rollback"
)

// PromotionPolicy decides about the change of a canary after its promotion.
// +kubebuilder:validation:Enum=KeepVariation;UpdateBaseline;AwaitBaseline
type PromotionPolicy string

// The policies.
const (
	// PromotionKeepVariation makes the canary the active variation: the roles change.
	PromotionKeepVariation PromotionPolicy = "KeepVariation"
	// PromotionUpdateBaseline has the executor change the stable variation as the clone was
	// changed, and returns the requests to it.
	PromotionUpdateBaseline PromotionPolicy = "UpdateBaseline"
	// PromotionAwaitBaseline waits until another author has changed the stable variation so,
	// such as a tool of GitOps, and returns the requests to it.
	PromotionAwaitBaseline PromotionPolicy = "AwaitBaseline"
)

// FallbackPolicy decides about an active variation that shrinks while requests move away.
// +kubebuilder:validation:Enum=Wait;HoldMinReplicas
type FallbackPolicy string

// The policies.
const (
	// FallbackWait holds the percentage until enough pods of the active variation are ready.
	FallbackWait FallbackPolicy = "Wait"
	// FallbackHoldMinReplicas has the executor raise minReplicas of the HorizontalPodAutoscaler of the
	// active variation for the run, and restore the former value after the run.
	FallbackHoldMinReplicas FallbackPolicy = "HoldMinReplicas"
)

// ApprovalPolicy says which users decide about a run in place of the judge.
// +kubebuilder:validation:Enum=Anyone;NotAuthor
type ApprovalPolicy string

// The policies.
const (
	// ApprovalAnyone asks for the right of the verb alone.
	ApprovalAnyone ApprovalPolicy = "Anyone"
	// ApprovalNotAuthor refuses the author of the run, and the last writer of the release.
	ApprovalNotAuthor ApprovalPolicy = "NotAuthor"
)

// SupersedePolicy decides about a run when a variation gets another revision in the middle of
// it.
// +kubebuilder:validation:Enum=Restart;Queue;Reject
type SupersedePolicy string

// The policies.
const (
	// SupersedeRestart ends the run, and begins the next run with the new revision.
	SupersedeRestart SupersedePolicy = "Restart"
	// SupersedeQueue has another change of a clone wait in the spec until the run has ended.
	SupersedeQueue SupersedePolicy = "Queue"
	// SupersedeReject has the API server refuse another pod template of either variation.
	SupersedeReject SupersedePolicy = "Reject"
)

// RolloutModel decides which resource a run divides.
// +kubebuilder:validation:Enum=Router;TargetGroup;Hybrid
type RolloutModel string

// The models.
const (
	// RolloutModelRouter divides the requests of a Service between variations.
	RolloutModelRouter RolloutModel = "Router"
	// RolloutModelTargetGroup divides the replicas of two Deployments: of workers that take
	// their work themselves, such as consumers of a queue.
	RolloutModelTargetGroup RolloutModel = "TargetGroup"
	// RolloutModelHybrid divides both together: the requests of a Service between the workloads of the
	// variations, and replicas between the groups of the variations.
	RolloutModelHybrid RolloutModel = "Hybrid"
)

// RolloutVerb is a request by a person about a run.
// +kubebuilder:validation:Enum=Start;Advance;Approve;Skip;Promote;Rollback;Retry
type RolloutVerb string

// RolloutControl is a request of a person. It names run and stage, so a copy of it has no effect
// later.
//
// +kubebuilder:validation:XValidation:rule="(self.verb == 'Promote') == has(self.variation)",message="the verb Promote, and no other, names a variation",fieldPath=".variation"
type RolloutControl struct {
	// verb is the verb that is asked for.
	// +required
	Verb RolloutVerb `json:"verb,omitempty"`
	// run is the run that the request is about.
	// +required
	// +kubebuilder:validation:Minimum=1
	Run int64 `json:"run,omitempty"`
	// stage is the stage that the request is about: of Advance the stage to go on to, of the
	// other verbs the stage under way. If unset, it is the next stage of Advance, and the stage
	// under way.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Stage int32 `json:"stage,omitempty"`
	// variation is the variation that is to get all requests, of Promote.
	// +optional
	Variation VariationName `json:"variation,omitempty"`
	// attempt tells two requests apart that are the same otherwise. The discovery server answers a
	// request with the same attempt once. If unset, the request is the first attempt.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Attempt int32 `json:"attempt,omitempty"`
	// requestedBy must be the authenticated user that sets it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`
	// reason is for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// RolloutDeadlines bound the waits of a run.
type RolloutDeadlines struct {
	// deployment is for the pods of the canary to be ready; the run is rolled back when it is
	// over. It bounds the wait for capacity as well, of which people are told.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('10s') && duration(self) <= duration('168h')",message="a duration such as 10m, from 10s to 168h"
	Deployment *metav1.Duration `json:"deployment,omitempty"`
	// approval is for a person to start, to approve, or to go on; the run is rolled back when
	// it is over.
	// +optional
	// +default="168h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('10s') && duration(self) <= duration('8760h')",message="a duration such as 24h, from 10s to 8760h"
	Approval *metav1.Duration `json:"approval,omitempty"`
	// extension is how long a stage is measured beyond its duration while the verdict is
	// Undecided; then onUndecided applies.
	// +optional
	// +default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="a duration such as 30m, from 0s to 168h"
	Extension *metav1.Duration `json:"extension,omitempty"`
}

// ControlType selects the pods with which the judge compares a canary.
// +kubebuilder:validation:Enum=Stable;Fresh
type ControlType string

// The controls.
const (
	// ControlStable is the active variation.
	ControlStable ControlType = "Stable"
	// ControlFresh is a clone of the active variation that the executor makes for the run.
	ControlFresh ControlType = "Fresh"
)

// RolloutAnalysisSpec says how a run is measured.
//
// +kubebuilder:validation:XValidation:rule="(has(self.control) && self.control == 'Fresh') == has(self.controlPodLabels)",message="the pods of a fresh control need labels that take them out of the Service: give controlPodLabels with Fresh, and leave them out with Stable",fieldPath=".controlPodLabels"
type RolloutAnalysisSpec struct {
	// cohortCheck is how long the visitors of the first stage are compared with all others,
	// before the first stage begins. Meanwhile the active variation serves both. It is made for
	// splits that keep visitors (trafficSplit.sticky); 5m if absent, and "0s" leaves it out.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && (duration(self) == duration('0s') || (duration(self) >= duration('10s') && duration(self) <= duration('24h')))",message="a duration such as 5m, from 10s to 24h, or 0s for no check"
	CohortCheck *metav1.Duration `json:"cohortCheck,omitempty"`
	// warmup is how long new pods may be slow. The judge leaves the latencies of this time after the beginning of
	// each stage out, and those of half of the duration of the stage at most. Beside a canary that is no clone, a
	// fresh control is ready for this time before it gets requests. 30s if absent, and "0s" leaves nothing out.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('10m')",message="a duration such as 30s, from 0s to 10m"
	Warmup *metav1.Duration `json:"warmup,omitempty"`
	// control selects the pods with which the judge compares a canary. Stable is the active
	// variation. Fresh is a clone of the active variation, which the executor makes for the
	// run. The clone is as large and as old as the canary, and gets as many requests, up to 33
	// percent. If unset, the control is Stable.
	// +optional
	// +default="Stable"
	Control ControlType `json:"control,omitempty"`
	// controlPodLabels are labels that the pods of a fresh control have in place of those of
	// the active variation. They must take the pods out of the selectors of the Service and of
	// the active variation's Deployment. So at least one key of each selector has another
	// value.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0 && size(k) <= 317)",message="a label key has 1 to 317 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('plumbline.dev/'))",message="labels of plumbline.dev are set by the executor alone: use another key"
	ControlPodLabels map[string]LabelValue `json:"controlPodLabels,omitempty"`
}

// Rollout has each new revision of the inactive variation prove itself in stages.
//
// +kubebuilder:validation:XValidation:rule="has(self.strategyName) != has(self.strategy)",message="name a RolloutStrategy, or give one: either strategyName or strategy"
// +kubebuilder:validation:XValidation:rule="!has(self.fallback) || self.fallback != 'HoldMinReplicas' || has(self.requestedBy)",message="the executor changes an autoscaler with the permissions of a user: set requestedBy to the user that writes the release",fieldPath=".requestedBy"
// +kubebuilder:validation:XValidation:rule="!has(self.approval) || self.approval != 'NotAuthor' || has(self.requestedBy)",message="approval NotAuthor compares users with the author: set requestedBy to the user that writes the release",fieldPath=".requestedBy"
// +kubebuilder:validation:XValidation:rule="!has(self.analysis) || !has(self.analysis.control) || self.analysis.control != 'Fresh' || has(self.requestedBy)",message="the executor makes a fresh control with the permissions of a user: set requestedBy to the user that writes the release",fieldPath=".requestedBy"
// +kubebuilder:validation:XValidation:rule="!has(self.analysis) || !has(self.analysis.control) || self.analysis.control != 'Fresh' || !has(self.model) || self.model == 'Router'",message="a fresh control gets requests and no replicas of groups: use the model Router, or the control Stable",fieldPath=".analysis.control"
type Rollout struct {
	// strategyName is the RolloutStrategy that a new run goes by.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	StrategyName string `json:"strategyName,omitempty"`
	// strategy is the strategy that a new run goes by, if no RolloutStrategy is named.
	// +optional
	Strategy *RolloutStrategySpec `json:"strategy,omitempty"`
	// model decides which resource a run divides: the requests of a Service (Router), the
	// replicas of two groups of workers (TargetGroup), or both together (Hybrid).
	// +optional
	// +default="Router"
	Model RolloutModel `json:"model,omitempty"`
	// start decides when a new run begins.
	// +optional
	// +default="Automatic"
	Start RolloutStart `json:"start,omitempty"`
	// onUndecided decides about a stage that is still Undecided after the extension.
	// +optional
	// +default="Hold"
	OnUndecided UndecidedPolicy `json:"onUndecided,omitempty"`
	// deadlines bound the waits of a run.
	// +optional
	Deadlines *RolloutDeadlines `json:"deadlines,omitempty"`
	// analysis says how a run is measured.
	// +optional
	Analysis *RolloutAnalysisSpec `json:"analysis,omitempty"`
	// gates can hold or fail a run beside the judge.
	// +optional
	Gates *RolloutGates `json:"gates,omitempty"`
	// pause keeps a run from going forward while it is Enabled. A failure still rolls back.
	// +optional
	// +default="Disabled"
	Pause Toggle `json:"pause,omitempty"`
	// promotion decides about the change of a canary after its promotion. A clone needs
	// UpdateBaseline or AwaitBaseline, a workload needs KeepVariation.
	// +optional
	// +default="KeepVariation"
	Promotion PromotionPolicy `json:"promotion,omitempty"`
	// fallback decides about an active variation that shrinks while requests move away. Wait
	// holds the percentage until enough pods are ready. HoldMinReplicas has the executor raise
	// minReplicas of the HorizontalPodAutoscaler of the active variation for the run. If unset,
	// the run waits.
	// +optional
	// +default="Wait"
	Fallback FallbackPolicy `json:"fallback,omitempty"`
	// approval says which users may approve a stage, skip a stage, or promote the canary. NotAuthor
	// refuses the author of the run, which is requestedBy of when the run began, and the present
	// requestedBy. A run keeps NotAuthor when the release is changed. If unset, the right of the verb is
	// enough.
	// +optional
	// +default="Anyone"
	Approval ApprovalPolicy `json:"approval,omitempty"`
	// supersede decides about a run when a variation gets another revision in the middle of it.
	// Restart ends the run, and begins the next run with the new revision. Queue has another
	// change of a clone wait until the run has ended. Reject has the API server refuse another
	// pod template of either variation until the run has ended. If unset, the run is restarted.
	// +optional
	// +default="Restart"
	Supersede SupersedePolicy `json:"supersede,omitempty"`
	// requestedBy must be the authenticated user that sets variations, stable or promotion. The
	// executor writes workloads only with the right of that user.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`
	// requestedByGroups are groups of that user that give the executor their permissions; each
	// must be one of the authenticated user's.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	RequestedByGroups []string `json:"requestedByGroups,omitempty"`
	// control is the last request of a person.
	// +optional
	Control *RolloutControl `json:"control,omitempty"`
}
