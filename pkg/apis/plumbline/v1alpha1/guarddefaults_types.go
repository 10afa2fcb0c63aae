// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CheckDefaults are the settings that a guard or an object inherits.
type CheckDefaults struct {
	// resyncPeriod is the time between two scheduled checks; 0s is off.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && (duration(self) == duration('0s') || (duration(self) >= duration('1s') && duration(self) <= duration('8760h')))",message="a duration such as 30m or 3h, from 1s to 8760h, or 0s for never"
	ResyncPeriod *metav1.Duration `json:"resyncPeriod,omitempty"`
	// recheckInterval is when an object that found no free slot is looked at again.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="a duration such as 30s or 5m, from 1s to 24h"
	RecheckInterval *metav1.Duration `json:"recheckInterval,omitempty"`
	// managementPolicy says whether objects may ever be repaired.
	// +optional
	ManagementPolicy ManagementPolicy `json:"managementPolicy,omitempty"`
}

// KindDefaults override the defaults for one kind.
type KindDefaults struct {
	GuardedResource `json:",inline"`
	CheckDefaults   `json:",inline"`
}

// GuardDefaultsSpec holds the defaults of an installation or of one Environment.
type GuardDefaultsSpec struct {
	// environment names the Environment these defaults are for; left out, they
	// are install-wide.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Environment string `json:"environment,omitempty"`
	// defaults for every kind.
	// +optional
	Defaults CheckDefaults `json:"defaults,omitzero"`
	// driftThreshold is the share of all guarded objects that may be checked or
	// repaired at once, rounded up, at least one; e.g. "10%".
	// +optional
	// +default="10%"
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	DriftThreshold string `json:"driftThreshold,omitempty"`
	// kinds override the defaults.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=32
	Kinds []KindDefaults `json:"kinds,omitempty"`
}

// GuardDefaultsStatus says whether the defaults are in force.
type GuardDefaultsStatus struct {
	// conditions are Ready, Reconciling, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// GuardDefaults are what guards and objects inherit. One is install-wide, and
// each Environment may have one more; of two that compete the older is in force.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=guarddefaults,scope=Cluster,categories=plumbline,shortName=gd
// +kubebuilder:printcolumn:name="Environment",type=string,JSONPath=`.spec.environment`
// +kubebuilder:printcolumn:name="Resync",type=string,JSONPath=`.spec.defaults.resyncPeriod`
// +kubebuilder:printcolumn:name="Threshold",type=string,JSONPath=`.spec.driftThreshold`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GuardDefaults struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec holds the defaults.
	// +required
	Spec GuardDefaultsSpec `json:"spec,omitzero"`
	// status says whether they are in force.
	// +optional
	Status GuardDefaultsStatus `json:"status,omitempty,omitzero"`
}

// GuardDefaultsList is a list of GuardDefaults.
// +kubebuilder:object:root=true
type GuardDefaultsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GuardDefaults `json:"items"`
}
