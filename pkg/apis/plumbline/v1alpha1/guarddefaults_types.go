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

// ReadinessRule says when an object of a kind is ready.
type ReadinessRule struct {
	// apiGroup is the API group of the kind, which is meant in all its versions; empty for the
	// core group.
	// +required
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	APIGroup string `json:"apiGroup"`
	// kind is the kind of the objects.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind,omitempty"`
	// expression is the expression in CEL about the variable object, which is true for an object
	// that is ready. An object is not ready while the expression is false, cannot be evaluated,
	// or costs more than 1000000.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression,omitempty"`
}

// GuardDefaultsSpec holds the defaults of an installation or of one Environment.
type GuardDefaultsSpec struct {
	// environmentName names the Environment these defaults are for. If unset, they are
	// install-wide.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	EnvironmentName string `json:"environmentName,omitempty"`
	// defaults are the defaults for every kind.
	// +optional
	Defaults CheckDefaults `json:"defaults,omitzero"`
	// driftThreshold is the share of all guarded objects that may be checked or repaired at
	// once, rounded up, at least one. It is a percentage such as "10%", or a fraction such as
	// "0.1". If unset, an Environment has that of the installation, and the installation that
	// of the assessor's option, which is 10% by default.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([1-9][0-9]?|100)%|0[.](0[1-9]|[1-9][0-9]?)|1([.]00?)?)$')",message="a percentage from 1% to 100%, or a fraction from 0.01 to 1 with at most two decimals, such as 20% or 0.2"
	DriftThreshold string `json:"driftThreshold,omitempty"`
	// kinds override the defaults.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=32
	Kinds []KindDefaults `json:"kinds,omitempty"`
	// readiness are rules of your own: they decide when a remediated object of a kind is ready.
	// An Environment's rule for a kind comes before that of the installation, and each rule
	// before the built-in one.
	// +optional
	// +listType=map
	// +listMapKey=apiGroup
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=32
	Readiness []ReadinessRule `json:"readiness,omitempty"`
}

// ReasonInvalidExpression is the reason of the Ready condition of active GuardDefaults with a
// readiness rule that cannot be compiled. No object of its kind is ready.
const ReasonInvalidExpression = "InvalidExpression"

// GuardDefaultsStatus reports whether the defaults are active.
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

// GuardDefaults are the defaults of guards and objects. One is install-wide, and each
// Environment may have one more; of two that compete the older is active.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=guarddefaults,scope=Cluster,categories=plumbline
// +kubebuilder:printcolumn:name="Environment",type=string,JSONPath=`.spec.environmentName`
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
	// status reports whether they are active.
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
