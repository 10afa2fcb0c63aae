// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"

// Rollout has the settings of a rollout for which the published design has no field. Its strategy is
// Release.RolloutStrategy, and verbs have operations of their own.
type Rollout struct {
	Model             Word[v1alpha1.RolloutModel]    `json:"model,omitempty"`
	Start             Word[v1alpha1.RolloutStart]    `json:"start,omitempty"`
	OnUndecided       Word[v1alpha1.UndecidedPolicy] `json:"onUndecided,omitempty"`
	Deadlines         *RolloutDeadlines              `json:"deadlines,omitempty"`
	Analysis          *RolloutAnalysis               `json:"analysis,omitempty"`
	Gates             *RolloutGates                  `json:"gates,omitempty"`
	Pause             *bool                          `json:"pause,omitempty"`
	Promotion         Word[v1alpha1.PromotionPolicy] `json:"promotion,omitempty"`
	Fallback          Word[v1alpha1.FallbackPolicy]  `json:"fallback,omitempty"`
	Approval          Word[v1alpha1.ApprovalPolicy]  `json:"approval,omitempty"`
	Supersede         Word[v1alpha1.SupersedePolicy] `json:"supersede,omitempty"`
	RequestedBy       string                         `json:"requestedBy,omitempty"`
	RequestedByGroups []string                       `json:"requestedByGroups,omitempty"`
}

// RolloutDeadlines bound the waits of a run.
type RolloutDeadlines struct {
	Deployment *Duration `json:"deployment,omitempty"`
	Approval   *Duration `json:"approval,omitempty"`
	Extension  *Duration `json:"extension,omitempty"`
}

// RolloutAnalysis says how a run is measured.
type RolloutAnalysis struct {
	CohortCheck      *Duration                      `json:"cohortCheck,omitempty"`
	Warmup           *Duration                      `json:"warmup,omitempty"`
	Control          Word[v1alpha1.ControlType]     `json:"control,omitempty"`
	ControlPodLabels map[string]v1alpha1.LabelValue `json:"controlPodLabels,omitempty"`
}

// RolloutGates can hold or fail a run.
type RolloutGates struct {
	Webhooks []GateWebhook `json:"webhooks,omitempty"`
}

// GateWebhook is a signed request whose answer can hold or fail a run.
type GateWebhook struct {
	Name        string                       `json:"name"`
	Event       Word[v1alpha1.GateEvent]     `json:"event"`
	Destination *v1alpha1.SecretKeyReference `json:"destination,omitempty"`
	SigningKey  *v1alpha1.SecretKeyReference `json:"signingKey,omitempty"`
}

// Acknowledgment says which proxies have to acknowledge a release, and for how long it waits.
type Acknowledgment struct {
	Deadline   *Duration                               `json:"deadline,omitempty"`
	OnTimeout  Word[v1alpha1.TimeoutPolicy]            `json:"onTimeout,omitempty"`
	Namespaces Word[v1alpha1.AcknowledgmentNamespaces] `json:"namespaces,omitempty"`
}
