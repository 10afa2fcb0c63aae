// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlanEvent is one line of the history of a plan.
type PlanEvent struct {
	// event is the event in one word, such as target.started.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Event string `json:"event,omitempty"`
	// step is the index of the target; absent for an event of the plan itself.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	Step *int32 `json:"step,omitempty"`
	// eventTime is when.
	// +required
	EventTime metav1.Time `json:"eventTime,omitempty,omitzero"`
}
