// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Decimal is a decimal number as text, such as "0.5".
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=26
// +kubebuilder:validation:Pattern=`^-?[0-9]{1,15}([.][0-9]{1,9})?$`
type Decimal string

// RolloutQuery is a query of Prometheus that can hold or fail a stage. Its result is one number; with no
// data, several numbers or NaN the query does not pass, and does not fail.
//
// +kubebuilder:validation:XValidation:rule="has(self.minimum) || has(self.maximum)",message="a query needs a minimum, a maximum, or both"
// +kubebuilder:validation:XValidation:rule="!has(self.minimum) || !has(self.maximum) || double(self.minimum) <= double(self.maximum)",message="the minimum is at most the maximum",fieldPath=".minimum"
type RolloutQuery struct {
	// name is the name of the query, unique in the strategy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// query is the query in PromQL. $(namespace), $(service), $(release), $(canary) and
	// $(stable) stand for names. Of these, canary is the variation on its way, and stable the
	// active variation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Query string `json:"query,omitempty"`
	// minimum is the minimum that the number may have.
	// +optional
	Minimum Decimal `json:"minimum,omitempty"`
	// maximum is the maximum that the number may have.
	// +optional
	Maximum Decimal `json:"maximum,omitempty"`
	// failureLimit is how many numbers outside of the bounds in a row fail the stage. Prometheus
	// is asked once per healthCheckInterval.
	// +optional
	// +default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	FailureLimit int32 `json:"failureLimit,omitempty"`
}

// GateEvent is the event that a webhook is asked about.
// +kubebuilder:validation:Enum=BeforeStart;BeforeStage;DuringStage;BeforePromotion;AfterRollback
type GateEvent string

// The events.
const (
	// GateBeforeStart is before a run leaves Created.
	GateBeforeStart GateEvent = "BeforeStart"
	// GateBeforeStage is before each stage.
	GateBeforeStage GateEvent = "BeforeStage"
	// GateDuringStage is while a stage is measured, once per healthCheckInterval.
	GateDuringStage GateEvent = "DuringStage"
	// GateBeforePromotion is before the canary becomes the active variation.
	GateBeforePromotion GateEvent = "BeforePromotion"
	// GateAfterRollback is told that a run was rolled back.
	GateAfterRollback GateEvent = "AfterRollback"
)

// GateWebhook is a signed request. Its answer can hold or fail a run.
type GateWebhook struct {
	// name is the name of the webhook, unique in the release.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// event is the event that the webhook is asked about.
	// +required
	Event GateEvent `json:"event,omitempty"`
	// destination names the Secret key that holds an https:// URL.
	// +required
	Destination SecretKeyReference `json:"destination,omitzero"`
	// signingKey names the Secret key that signs requests.
	// +required
	SigningKey SecretKeyReference `json:"signingKey,omitzero"`
}

// RolloutGates can hold or fail a run beside the judge. Gates alone pass no stage.
type RolloutGates struct {
	// webhooks are the webhooks that are asked.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Webhooks []GateWebhook `json:"webhooks,omitempty"`
}

// GateKind says how a gate is asked.
// +kubebuilder:validation:Enum=Query;Webhook
type GateKind string

// GateResult is the answer of a gate. All but Pass and Fail hold.
// +kubebuilder:validation:Enum=Pass;Fail;Wait;NoData
type GateResult string

// RolloutGateStatus is the last answer of a gate.
type RolloutGateStatus struct {
	// kind is the kind of the gate.
	// +required
	Kind GateKind `json:"kind,omitempty"`
	// name is the name of the gate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// event is the event that the gate was asked about last.
	// +required
	Event GateEvent `json:"event,omitempty"`
	// run is the run that the gate was asked about.
	// +required
	// +kubebuilder:validation:Minimum=1
	Run int64 `json:"run,omitempty"`
	// stage is the stage that the gate was asked about, if the event is about a stage.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Stage int32 `json:"stage,omitempty"`
	// restarts is the number of restarts of the stage before the gate was asked.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarts int32 `json:"restarts"`
	// result is the result of the gate.
	// +required
	Result GateResult `json:"result,omitempty"`
	// value is the value of a query.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`
	// failures are the numbers outside of the bounds in a row.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Failures int32 `json:"failures"`
	// answerTime is when the answer came.
	// +required
	AnswerTime metav1.Time `json:"answerTime,omitempty,omitzero"`
	// message is a sentence for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}
