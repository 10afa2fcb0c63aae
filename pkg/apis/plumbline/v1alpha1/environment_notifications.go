// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReleaseNotifications name the channels for events of the runs of releases.
type ReleaseNotifications struct {
	// onStarted tells that a run has started.
	// +optional
	// +default="Disabled"
	OnStarted Toggle `json:"onStarted,omitempty"`
	// onAdvanced tells that a run goes on to its next stage.
	// +optional
	// +default="Disabled"
	OnAdvanced Toggle `json:"onAdvanced,omitempty"`
	// onPromoted tells that the canary gets all requests.
	// +optional
	// +default="Enabled"
	OnPromoted Toggle `json:"onPromoted,omitempty"`
	// onFailed tells that a stage failed, and that a run is rolled back.
	// +optional
	// +default="Enabled"
	OnFailed Toggle `json:"onFailed,omitempty"`
	// onWaiting tells that a run waits for a person, and that a wait is overdue.
	// +optional
	// +default="Enabled"
	OnWaiting Toggle `json:"onWaiting,omitempty"`
	// channels are the channels that get a notification. Events about releases have no
	// severity, so minimumSeverity does not filter them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Channels []NotificationChannel `json:"channels,omitempty"`
}
