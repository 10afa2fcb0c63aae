// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RolloutFreshControl is the state of the clone with which a run compares its canary.
type RolloutFreshControl struct {
	// replicas are the replicas that the executor was asked to give it; 0 once it is scaled to
	// 0.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Replicas *int32 `json:"replicas,omitempty"`
	// sourceHash is the pod template of the active variation that it was made from; absent before.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	SourceHash string `json:"sourceHash,omitempty"`
	// templateHash is its own pod template, as the executor has left it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	TemplateHash string `json:"templateHash,omitempty"`
	// requiredReady is how many ready endpoints the percentage of the stage under way needs; absent before
	// the first stage.
	// +optional
	// +kubebuilder:validation:Minimum=1
	RequiredReady int32 `json:"requiredReady,omitempty"`
	// shortTime is since when it has fewer ready endpoints than that; absent if it has enough.
	// +optional
	ShortTime *metav1.Time `json:"shortTime,omitempty"`
	// readyTime is since when it has had the ready endpoints that the next percentage needs; absent before that,
	// and beside a canary that is a clone.
	// +optional
	ReadyTime *metav1.Time `json:"readyTime,omitempty"`
	// completionTime is since when the canary is compared with the active variation itself; absent while
	// the fresh control is in use.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// message says why, for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// RolloutClone is the state of a canary that is a clone.
type RolloutClone struct {
	// promotion is the promotion of the canary. It follows spec.rollout.promotion.
	// +required
	Promotion PromotionPolicy `json:"promotion,omitempty"`
	// changeHash identifies the change that the run began with.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	ChangeHash string `json:"changeHash,omitempty"`
	// changed is the active variation with the change of the canary, once it was seen so.
	// +optional
	Changed *VariationRevision `json:"changed,omitempty"`
	// queuedTime is since when the spec asks for another change, which the next run takes up.
	// +optional
	QueuedTime *metav1.Time `json:"queuedTime,omitempty"`
	// returnTime is when all requests were given back to the active variation.
	// +optional
	ReturnTime *metav1.Time `json:"returnTime,omitempty"`
}

// RolloutHold is a minimum of replicas that the executor holds at an autoscaler.
type RolloutHold struct {
	// run is the run of the ReleaseWork that holds the minimum.
	// +required
	// +kubebuilder:validation:Minimum=1
	Run int64 `json:"run,omitempty"`
	// number is the number of that ReleaseWork.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number,omitempty"`
	// variation is the variation with the workload that the autoscaler scales.
	// +required
	Variation VariationName `json:"variation,omitempty"`
	// replicas are the replicas that the run needs of the variation.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Replicas int32 `json:"replicas,omitempty"`
	// autoscaler is the autoscaler that the executor changed. If unset, the autoscaler had as
	// many replicas already.
	// +optional
	Autoscaler *HeldAutoscaler `json:"autoscaler,omitempty"`
}
