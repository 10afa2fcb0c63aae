// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RunState is how far a run is.
// +kubebuilder:validation:Enum=Created;Deploying;Running;Promoting;Completed;RolledBack
type RunState string

// RolloutStageState is how far a stage is.
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Skipped
type RolloutStageState string

// VariationRevision is the revision of a variation.
type VariationRevision struct {
	// variation names the variation.
	// +required
	Variation VariationName `json:"variation,omitempty"`
	// hash is the canonical hash of the pod template. With the model Hybrid the hash is one of the pod
	// templates of the workload and of the group, and begins with both:.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	Hash string `json:"hash,omitempty"`
	// label is the revision label of the pods: pod-template-hash or controller-revision-hash. With a
	// group the label identifies the revision of the Deployment of the group as well.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Label string `json:"label,omitempty"`
	// image is the image of the first container, for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// RolloutStageStatus is a stage of the strategy that the run began with, and its result.
type RolloutStageStatus struct {
	// number is the number of the stage, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Number int32 `json:"number,omitempty"`
	// state is the state of the stage.
	// +required
	State RolloutStageState `json:"state,omitempty"`
	// trafficPercentage is the traffic percentage of the canary.
	// +required
	TrafficPercentage *Percentage `json:"trafficPercentage,omitempty"`
	// durationSeconds is the shortest time that the stage is measured.
	// +required
	// +kubebuilder:validation:Minimum=0
	DurationSeconds *int64 `json:"durationSeconds,omitempty"`
	// healthThreshold is the percentage of successful requests that is wanted.
	// +required
	HealthThreshold *Percentage `json:"healthThreshold,omitempty"`
	// requireApproval says whether a person has to approve the stage.
	// +required
	RequireApproval Toggle `json:"requireApproval,omitempty"`
	// shiftTime is when the percentage was decided.
	// +optional
	ShiftTime *metav1.Time `json:"shiftTime,omitempty"`
	// startTime is when the clock of the stage began: proxies had acknowledged the percentage.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// passTime is when health passed.
	// +optional
	PassTime *metav1.Time `json:"passTime,omitempty"`
	// completionTime is when the run left the stage.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// stoppedSeconds is for how long the clock of the stage stood before.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StoppedSeconds int64 `json:"stoppedSeconds"`
	// stopTime is since when the clock stands: too few proxies tell counts.
	// +optional
	StopTime *metav1.Time `json:"stopTime,omitempty"`
	// shortTime is since when the canary has fewer ready endpoints than its percentage needs.
	// +optional
	ShortTime *metav1.Time `json:"shortTime,omitempty"`
	// requiredReady are the ready endpoints that the percentage needed when it was decided, of a
	// canary that is a clone.
	// +optional
	// +kubebuilder:validation:Minimum=1
	RequiredReady int32 `json:"requiredReady,omitempty"`
	// approvedBy is the user that approved the stage.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ApprovedBy string `json:"approvedBy,omitempty"`
	// restarts counts measurements that began again.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarts int32 `json:"restarts"`
	// message says why the stage passed or failed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// RolloutWait is the reason for which a run waits.
type RolloutWait struct {
	// reason is the reason in one word.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason,omitempty"`
	// startTime is since when.
	// +required
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`
	// deadlineTime is when something follows.
	// +optional
	DeadlineTime *metav1.Time `json:"deadlineTime,omitempty"`
	// message is a sentence for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// HandledControl is a request of a person that was answered.
type HandledControl struct {
	RolloutControl `json:",inline"`
	// refusal says why the request had no effect.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Refusal string `json:"refusal,omitempty"`
}

// RejectedRevision is a revision that no run takes up again until a person asks for it.
type RejectedRevision struct {
	VariationRevision `json:",inline"`
	// run is the run that rejected it.
	// +required
	// +kubebuilder:validation:Minimum=1
	Run int64 `json:"run,omitempty"`
	// reason is the reason in one word.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason,omitempty"`
	// rejectionTime is when.
	// +required
	RejectionTime metav1.Time `json:"rejectionTime,omitempty,omitzero"`
}

// RolloutEvent is one line of the history of a release.
type RolloutEvent struct {
	// number is the number of the line, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number,omitempty"`
	// eventTime is when.
	// +required
	EventTime metav1.Time `json:"eventTime,omitempty,omitzero"`
	// run is the run that it is about; 0 before the first.
	// +required
	// +kubebuilder:validation:Minimum=0
	Run int64 `json:"run"`
	// event is the event in one word, such as canary.stage_started.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Event string `json:"event,omitempty"`
	// trafficPercentage is the traffic percentage that the canary was to have then.
	// +required
	TrafficPercentage *Percentage `json:"trafficPercentage,omitempty"`
	// message is a sentence for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// RolloutRun is one revision on its way.
type RolloutRun struct {
	// number is the number of the run, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number,omitempty"`
	// state is the state of the run.
	// +required
	State RunState `json:"state,omitempty"`
	// from is the active variation, as it was when the run began.
	// +required
	From VariationRevision `json:"from,omitzero"`
	// to is the canary.
	// +required
	To VariationRevision `json:"to,omitzero"`
	// activeImages are the images of the containers of from run, as CONTAINER=IMAGE, while
	// supersede is Reject. A change that returns to these images is not refused. The list is
	// absent if it is too long.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=12
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=384
	ActiveImages []string `json:"activeImages,omitempty"`
	// strategyName is the RolloutStrategy that the run goes by, if it was named.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StrategyName string `json:"strategyName,omitempty"`
	// approval is spec.rollout.approval of when the run began.
	// +optional
	Approval ApprovalPolicy `json:"approval,omitempty"`
	// author is spec.rollout.requestedBy of when the run began. If unset, the release named no user.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Author string `json:"author,omitempty"`
	// autoAdvance is the setting of that strategy for the end of a stage.
	// +required
	AutoAdvance Toggle `json:"autoAdvance,omitempty"`
	// rollbackOnFailure is the setting of that strategy for failures.
	// +required
	RollbackOnFailure Toggle `json:"rollbackOnFailure,omitempty"`
	// healthCheckIntervalSeconds is the interval of health checks of that strategy, in seconds.
	// +required
	// +kubebuilder:validation:Minimum=10
	HealthCheckIntervalSeconds int64 `json:"healthCheckIntervalSeconds,omitempty"`
	// queries are the queries of that strategy.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Queries []RolloutQuery `json:"queries,omitempty"`
	// capacity is the most ready endpoints that the active variation had since the run began.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Capacity int32 `json:"capacity"`
	// clone is the state of a canary that is a clone.
	// +optional
	Clone *RolloutClone `json:"clone,omitempty"`
	// division is the division of the replicas of two groups; absent with the model Router.
	// +optional
	Division *RolloutDivision `json:"division,omitempty"`
	// cohortCheck is the comparison of visitors before the first stage; absent without a
	// comparison.
	// +optional
	CohortCheck *RolloutCohortCheck `json:"cohortCheck,omitempty"`
	// freshControl is the clone of the active variation with which the canary is compared; absent without
	// one.
	// +optional
	FreshControl *RolloutFreshControl `json:"freshControl,omitempty"`
	// startTime is when the run was created.
	// +required
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`
	// completionTime is when the run ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// reason is the reason of the end, in one word.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason,omitempty"`
	// message is about the end, for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// stages are the stages of the run.
	// +required
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Stages []RolloutStageStatus `json:"stages,omitempty"`
}

// RolloutCohortCheck is the comparison of the visitors of the first stage with all others.
type RolloutCohortCheck struct {
	// durationSeconds is how long it lasts once proxies have acknowledged it.
	// +required
	// +kubebuilder:validation:Minimum=1
	DurationSeconds int64 `json:"durationSeconds,omitempty"`
	// shiftTime is when it was decided.
	// +optional
	ShiftTime *metav1.Time `json:"shiftTime,omitempty"`
	// startTime is when proxies had acknowledged it.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when it was over.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// ratio is the ratio of the error rates up to which the canary counts as good as the others,
	// such as "1.5".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8
	Ratio string `json:"ratio,omitempty"`
	// skipped says that a user ended it before its time; the history names the user. If unset,
	// no run did.
	// +optional
	Skipped Toggle `json:"skipped,omitempty"`
}

// RolloutStatus is the state of the rollouts of a release.
type RolloutStatus struct {
	// run is the run that began last.
	// +optional
	Run *RolloutRun `json:"run,omitempty"`
	// stage is the number of the stage under way.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Stage int32 `json:"stage,omitempty"`
	// waiting is the reason for which the run waits.
	// +optional
	Waiting *RolloutWait `json:"waiting,omitempty"`
	// analysis holds the judge's counts of the run.
	// +optional
	Analysis *RolloutAnalysis `json:"analysis,omitempty"`
	// gates are the last answers of the gates of the run.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Gates []RolloutGateStatus `json:"gates,omitempty"`
	// handled is the last request of a person that was answered.
	// +optional
	Handled *HandledControl `json:"handled,omitempty"`
	// seen are the revisions that runs have taken up, or that were there at their end.
	// +optional
	// +listType=map
	// +listMapKey=variation
	// +kubebuilder:validation:MaxItems=8
	Seen []VariationRevision `json:"seen,omitempty"`
	// rejected revisions are rolled out again only when a person asks for it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Rejected []RejectedRevision `json:"rejected,omitempty"`
	// works are the ReleaseWorks of the run, the newest last.
	// +optional
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MaxItems=8
	Works []RolloutWork `json:"works,omitempty"`
	// groups are the groups of the release, with the models TargetGroup and Hybrid.
	// +optional
	// +listType=map
	// +listMapKey=variation
	// +kubebuilder:validation:MaxItems=2
	Groups []RolloutGroup `json:"groups,omitempty"`
	// hold is the minimum of replicas that is held for a run, and the former value.
	// +optional
	Hold *RolloutHold `json:"hold,omitempty"`
	// history is the history of the release, with the newest line last.
	// +optional
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MaxItems=64
	History []RolloutEvent `json:"history,omitempty"`
}
