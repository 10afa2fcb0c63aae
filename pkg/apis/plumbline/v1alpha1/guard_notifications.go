// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NotificationSilence holds notifications back until a time. Drift that is left when the silence
// ends is told then.
type NotificationSilence struct {
	// namespaces are the namespaces without notifications. If unset, all namespaces of the guard.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`
	// reason is for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
	// endTime is when the silence ends.
	// +required
	EndTime metav1.Time `json:"endTime,omitempty,omitzero"`
}

// GuardNotifications name the channels for drift of the objects that a guard selects.
type GuardNotifications struct {
	// onDetected tells that objects have drifted, and that the severity of a drift has risen.
	// +optional
	// +default="Enabled"
	OnDetected Toggle `json:"onDetected,omitempty"`
	// onResolved tells that a drift that was told is over.
	// +optional
	// +default="Enabled"
	OnResolved Toggle `json:"onResolved,omitempty"`
	// groupInterval is the minimum time between two notifications about one namespace. A
	// notification has all changes since the one before.
	// +optional
	// +default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,4}h)?([0-9]{1,6}m)?([0-9]{1,9}s)?$') && duration(self) >= duration('10s') && duration(self) <= duration('168h')",message="a duration such as 5m or 24h, from 10s to 168h"
	GroupInterval *metav1.Duration `json:"groupInterval,omitempty"`
	// silences hold notifications back until a time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Silences []NotificationSilence `json:"silences,omitempty"`
	// channels are the channels that get a notification. The Secrets that a SpecGuard names have
	// an annotation that lists its namespace.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Channels []NotificationChannel `json:"channels,omitempty"`
}
