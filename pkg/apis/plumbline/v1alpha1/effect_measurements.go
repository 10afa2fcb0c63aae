// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FiringAlert is an alert that fires.
type FiringAlert struct {
	// fingerprint is the fingerprint of its labels.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Fingerprint string `json:"fingerprint,omitempty"`
	// name is the name of the alert.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// startTime is when it began to fire.
	// +required
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`
}

// AlertsBefore are the alerts of before a write.
type AlertsBefore struct {
	// readTime is when they were asked for.
	// +required
	ReadTime metav1.Time `json:"readTime,omitempty,omitzero"`
	// alerts are those about the target that began to fire before the write, and fired at the
	// measurement; at most 32.
	// +optional
	// +listType=map
	// +listMapKey=fingerprint
	// +kubebuilder:validation:MaxItems=32
	Alerts []FiringAlert `json:"alerts,omitempty"`
}

// MeasuredAlerts count the alerts about a target.
type MeasuredAlerts struct {
	// before counts those of before the write.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Before int32 `json:"before"`
	// resolved counts those of before the write that do not fire any more.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Resolved int32 `json:"resolved"`
	// firing counts those that fire.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Firing int32 `json:"firing"`
	// new counts those that began to fire after the write.
	// +optional
	// +kubebuilder:validation:Minimum=0
	New int32 `json:"new"`
}

// MeasuredMetric is one metric of a target, in three windows.
type MeasuredMetric struct {
	// name is the name of the query, with the labels of the series.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=320
	Name string `json:"name,omitempty"`
	// score is the score in basis points; absent if the metric has no data.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Score *int32 `json:"score,omitempty"`
	// before is the median before the drift; absent if the metric has no data.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Before string `json:"before,omitempty"`
	// during is the median from the drift to the write.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	During string `json:"during,omitempty"`
	// after is the median after the stabilization.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	After string `json:"after,omitempty"`
	// message is a sentence for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}
