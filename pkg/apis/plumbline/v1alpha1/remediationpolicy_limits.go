// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CircuitBreakerSettings stop a policy that fails.
type CircuitBreakerSettings struct {
	// failureThreshold is how many failures in a row open the breaker.
	// +optional
	// +default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
	// openDuration is how long it stays open before one remediation is tried.
	// +optional
	// +default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="a duration such as 30m, from 1m to 168h"
	OpenDuration *metav1.Duration `json:"openDuration,omitempty"`
}

// RemediationSafety bounds the remediations of a policy.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxPerHour) || !has(self.maxPerDay) || self.maxPerHour <= self.maxPerDay",message="maxPerHour is more than maxPerDay",fieldPath=".maxPerHour"
type RemediationSafety struct {
	// maxConcurrent remediations at once.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxConcurrent int32 `json:"maxConcurrent,omitempty"`
	// maxPerHour remediations in any hour.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxPerHour int32 `json:"maxPerHour,omitempty"`
	// maxPerDay remediations in any 24 hours.
	// +optional
	// +default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxPerDay int32 `json:"maxPerDay,omitempty"`
	// cooldown is the cooldown between the end of one remediation and the next one of the
	// policy.
	// +optional
	// +default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="a duration such as 5m, from 0s to 24h"
	Cooldown *metav1.Duration `json:"cooldown,omitempty"`
	// maxTargets is the largest number of targets in one plan; never more than 10.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	MaxTargets int32 `json:"maxTargets,omitempty"`
	// maxTargetPercent is the share of the policy's objects that one plan may
	// have, rounded down, at least one.
	// +optional
	// +default=25
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=25
	MaxTargetPercent int32 `json:"maxTargetPercent,omitempty"`
	// minHealthyPercent is the percentage of the objects without drift that must be healthy.
	// +optional
	// +default=75
	// +kubebuilder:validation:Minimum=75
	// +kubebuilder:validation:Maximum=100
	MinHealthyPercent int32 `json:"minHealthyPercent,omitempty"`
	// circuitBreaker stops a policy that fails.
	// +optional
	// +default={}
	CircuitBreaker CircuitBreakerSettings `json:"circuitBreaker,omitzero"`
}

// MaintenanceWindow is a time of the day. A window with a start after its end crosses midnight
// and belongs to the day on which it begins. A window without both is the whole day, and names
// the time zone of the allowed days and times.
//
// +kubebuilder:validation:XValidation:rule="has(self.start) == has(self.end)",message="start and end come together",fieldPath=".start"
// +kubebuilder:validation:XValidation:rule="!has(self.start) || !has(self.end) || self.start != self.end",message="a window that begins when it ends is never open; leave it out to allow the whole day",fieldPath=".end"
type MaintenanceWindow struct {
	// start as HH:MM, 00:00 to 23:59.
	// +optional
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	Start string `json:"start,omitempty"`
	// end as HH:MM; the window is closed from this minute on.
	// +optional
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	End string `json:"end,omitempty"`
	// timeZone is the time zone by its IANA name, e.g. Europe/Berlin.
	// +optional
	// +default="UTC"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^(UTC|[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){1,2})$`
	TimeZone string `json:"timeZone,omitempty"`
}

// Weekday is a day of the week.
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type Weekday string

// RemediationSchedule says when a policy may act. All that is given must hold.
//
// +kubebuilder:validation:XValidation:rule="has(self.allowedStart) == has(self.allowedEnd)",message="allowedStart and allowedEnd come together",fieldPath=".allowedStart"
// +kubebuilder:validation:XValidation:rule="!has(self.allowedStart) || !has(self.allowedEnd) || self.allowedStart != self.allowedEnd",message="a time that begins when it ends is never open; leave both out to allow the whole day",fieldPath=".allowedEnd"
// +kubebuilder:validation:XValidation:rule="!has(self.maintenanceWindow) || has(self.maintenanceWindow.start) || has(self.maintenanceWindow.end) || has(self.allowedDays) || has(self.allowedStart)",message="a window without start and end is only for the time zone of allowedDays, allowedStart and allowedEnd; give one of them",fieldPath=".maintenanceWindow.start"
type RemediationSchedule struct {
	// maintenanceWindow is the maintenance window in which the policy acts.
	// +optional
	MaintenanceWindow *MaintenanceWindow `json:"maintenanceWindow,omitempty"`
	// allowedDays are the days on which the policy acts. If unset, it acts every day.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	AllowedDays []Weekday `json:"allowedDays,omitempty"`
	// allowedStart is from when on each day it acts, as HH:MM in the window's time zone.
	// +optional
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	AllowedStart string `json:"allowedStart,omitempty"`
	// allowedEnd is until when.
	// +optional
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	AllowedEnd string `json:"allowedEnd,omitempty"`
	// urgent decides whether a drift of urgency Immediate may be remediated outside of all
	// this, and past a PodDisruptionBudget.
	// +optional
	// +default="Forbidden"
	Urgent Permission `json:"urgent,omitempty"`
}

// RemediationHealth defines a healthy target after a step.
type RemediationHealth struct {
	// delayAfter is the pause between a batch and the next one.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="a duration such as 1m, from 0s to 24h"
	DelayAfter *metav1.Duration `json:"delayAfter,omitempty"`
	// stabilization is how long a target must stay as desired and ready.
	// +optional
	// +default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="a duration such as 10s, from 0s to 1h"
	Stabilization *metav1.Duration `json:"stabilization,omitempty"`
	// timeout is the timeout after which a target that is not ready has failed.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('5s') && duration(self) <= duration('24h')",message="a duration such as 10m, from 5s to 24h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}
