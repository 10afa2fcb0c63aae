// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutStage is one step of a rollout.
type RolloutStage struct {
	// trafficPercentage is the traffic percentage of the requests that the canary gets: a whole
	// number, or a string with at most two decimals. Only the first stage can have 0: then the
	// canary runs in full size, and gets the requests of the override header alone.
	// +required
	TrafficPercentage *Percentage `json:"trafficPercentage,omitempty"`
	// duration is the shortest time that the stage is measured, from when proxies have
	// acknowledged its percentage. Only the last stage can have 0s: it ends when they have.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="a duration such as 10m, from 0s to 168h"
	Duration *metav1.Duration `json:"duration,omitempty"`
	// healthThreshold is the percentage of successful requests that the canary has to show. It
	// is a whole number, or a string with at most two decimals, such as "99.95".
	// +optional
	// +default=95
	HealthThreshold *Percentage `json:"healthThreshold,omitempty"`
	// requireApproval has the stage wait for a person once it has passed.
	// +optional
	// +default="Disabled"
	RequireApproval Toggle `json:"requireApproval,omitempty"`
}

// RolloutStrategySpec says how a rollout goes from stage to stage.
//
// +kubebuilder:validation:XValidation:rule="[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15].all(i, i >= size(self.stages) || double(string(self.stages[i].trafficPercentage)) > double(string(self.stages[i - 1].trafficPercentage)))",message="each stage has more requests than the stage before it",fieldPath=".stages"
// +kubebuilder:validation:XValidation:rule="[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15].all(i, i + 1 >= size(self.stages) || duration(self.stages[i].duration) > duration('0s'))",message="only the last stage can have a duration of 0s",fieldPath=".stages"
type RolloutStrategySpec struct {
	// description is for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Description string `json:"description,omitempty"`
	// stages are the stages in their order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Stages []RolloutStage `json:"stages,omitempty"`
	// autoAdvance goes on to the next stage without a person; Disabled waits for the verb
	// Advance.
	// +optional
	// +default="Enabled"
	AutoAdvance Toggle `json:"autoAdvance,omitempty"`
	// rollbackOnFailure returns all requests to the active variation when a stage fails;
	// Disabled holds the percentage until a person decides.
	// +optional
	// +default="Enabled"
	RollbackOnFailure Toggle `json:"rollbackOnFailure,omitempty"`
	// healthCheckInterval is how often health is looked at. Proxies tell counts every 10s.
	// +optional
	// +default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('10s') && duration(self) <= duration('1h')",message="a duration such as 30s, from 10s to 1h"
	HealthCheckInterval *metav1.Duration `json:"healthCheckInterval,omitempty"`
	// queries are the queries of Prometheus that can hold or fail each stage in which the canary
	// has requests. The strategy of a release can have queries only where the installation
	// permits that.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Queries []RolloutQuery `json:"queries,omitempty"`
}

// RolloutStrategy is a strategy that releases of all namespaces can name. A run keeps a copy, so an
// edit or a deletion changes no run that has begun.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=rolloutstrategies,scope=Cluster,categories=plumbline,shortName=rstrategy
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Stages",type=string,JSONPath=`.spec.stages[*].trafficPercentage`
// +kubebuilder:printcolumn:name="Auto-Advance",type=string,JSONPath=`.spec.autoAdvance`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RolloutStrategy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the strategy.
	// +required
	Spec RolloutStrategySpec `json:"spec,omitzero"`
}

// RolloutStrategyList is a list of RolloutStrategies.
// +kubebuilder:object:root=true
type RolloutStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutStrategy `json:"items"`
}
