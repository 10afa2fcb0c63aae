// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VariationGroupKind is the kind of a workload that can be a group.
// +kubebuilder:validation:Enum=Deployment
type VariationGroupKind string

// VariationGroupDeployment is a Deployment of apps.
const VariationGroupDeployment VariationGroupKind = "Deployment"

// VariationGroup names the workload that is a group, in the namespace of the release.
type VariationGroup struct {
	// kind is the kind of the workload.
	// +required
	Kind VariationGroupKind `json:"kind,omitempty"`
	// name is the name of the workload.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
}

// HasGroups tells whether the runs of a release divide the replicas of groups.
func (s *ABReleaseSpec) HasGroups() bool {
	return s.Rollout != nil && (s.Rollout.Model == RolloutModelTargetGroup || s.Rollout.Model == RolloutModelHybrid)
}

// HasRequests tells whether a release divides the requests of a Service.
func (s *ABReleaseSpec) HasRequests() bool {
	return s.Rollout == nil || s.Rollout.Model != RolloutModelTargetGroup
}

// GroupOf returns the group of a variation; nil for a variation without a group.
func (s *ABReleaseSpec) GroupOf(variation VariationName) *VariationGroup {
	for i := range s.Variations {
		if s.Variations[i].Name == variation {
			return s.Variations[i].Group
		}
	}
	return nil
}

// RolloutDivision is how a run divides the replicas of two groups.
type RolloutDivision struct {
	// model is the model of the run. If unset, the run divides no requests.
	// +optional
	Model RolloutModel `json:"model,omitempty"`
	// replicas are the replicas of both groups together when the run started. The run keeps that
	// number.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=200000
	Replicas *int32 `json:"replicas,omitempty"`
	// active are the replicas that the run has given the active variation, or found there.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=200000
	Active *int32 `json:"active,omitempty"`
	// canary are the replicas that the run has given the canary, or found there.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=200000
	Canary *int32 `json:"canary,omitempty"`
	// shortTime is since when the group of the canary has fewer ready pods than the stage gives it.
	// +optional
	ShortTime *metav1.Time `json:"shortTime,omitempty"`
	// settlementTime is when the groups had the sizes that the end of the run gives them.
	// +optional
	SettlementTime *metav1.Time `json:"settlementTime,omitempty"`
}

// RolloutGroup is a group as the discovery server sees it.
type RolloutGroup struct {
	// variation names the variation.
	// +required
	Variation VariationName `json:"variation,omitempty"`
	// wanted are the replicas that the stage gives the group; absent while no run is on.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Wanted *int32 `json:"wanted,omitempty"`
	// replicas are the replicas that the Deployment asks for.
	// +required
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// ready pods of the group.
	// +required
	// +kubebuilder:validation:Minimum=0
	Ready *int32 `json:"ready,omitempty"`
	// restartedPods are those with a container that has restarted since the percentage of the
	// stage was decided; absent while no stage is under way.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RestartedPods *int32 `json:"restartedPods,omitempty"`
}
