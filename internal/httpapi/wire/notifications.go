// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"

// Notifications say of which events people are told, and where. A switch that is left out has the default of
// the kind.
type Notifications struct {
	// OnPlanCreated is enabled, if_waiting or disabled.
	OnPlanCreated          Word[v1alpha1.PlanCreatedNotification] `json:"onPlanCreated,omitempty"`
	OnRemediationStarted   *bool                                  `json:"onRemediationStarted,omitempty" kind:"OnStarted"`
	OnRemediationCompleted *bool                                  `json:"onRemediationCompleted,omitempty" kind:"OnCompleted"`
	OnRemediationFailed    *bool                                  `json:"onRemediationFailed,omitempty" kind:"OnFailed"`
	OnEscalated            *bool                                  `json:"onEscalated,omitempty"`
	OnIneffective          *bool                                  `json:"onIneffective,omitempty"`
	Channels               []Channel                              `json:"channels,omitempty"`
}

// Channel is where people are told. Addresses are in Secrets of Plumbline's namespace, never here.
type Channel struct {
	Name            string                       `json:"name,omitempty"`
	Type            Word[v1alpha1.ChannelType]   `json:"type"`
	Channel         string                       `json:"channel,omitempty"`
	Recipients      []string                     `json:"recipients,omitempty"`
	MinimumSeverity Word[v1alpha1.SeverityLevel] `json:"minimumSeverity,omitempty"`
	Destination     *v1alpha1.SecretKeyReference `json:"destination,omitempty"`
	SigningKey      *v1alpha1.SecretKeyReference `json:"signingKey,omitempty"`
	Token           *v1alpha1.SecretKeyReference `json:"token,omitempty"`
	Source          string                       `json:"source,omitempty"`
}
