// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Criticality ranks environments.
// +kubebuilder:validation:Enum=Production;Staging;Development;Other
type Criticality string

// The criticalities, from high to low.
const (
	// CriticalityProduction: users notice.
	CriticalityProduction Criticality = "Production"
	// CriticalityStaging: the rehearsal of production.
	CriticalityStaging Criticality = "Staging"
	// CriticalityDevelopment: work in progress.
	CriticalityDevelopment Criticality = "Development"
	// CriticalityOther: everything else, and a namespace without an Environment.
	CriticalityOther Criticality = "Other"
)

// ComponentCriticality weighs one component; a component is named by the label
// app.kubernetes.io/name of its workloads, or by the workload's name without it.
type ComponentCriticality struct {
	// component is the name of the component.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Component string `json:"component,omitempty"`
	// criticality is 0 (may be lost) to 100 (core); 50 for components not listed.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Criticality *int32 `json:"criticality,omitempty"`
}

// ComponentDependencies lists the dependencies of one component. The blast radius of a component
// is the number of components that need it, directly or through others.
type ComponentDependencies struct {
	// component is the name of the component.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Component string `json:"component,omitempty"`
	// dependsOn names the components it needs.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	DependsOn []string `json:"dependsOn,omitempty"`
}

// EnvironmentCaps bounds all policies of an Environment together. 0 allows no remediation; an
// unset field is no cap.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxPerHour) || !has(self.maxPerDay) || self.maxPerHour <= self.maxPerDay",message="maxPerHour is more than maxPerDay",fieldPath=".maxPerHour"
type EnvironmentCaps struct {
	// maxConcurrent remediations at once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`
	// maxPerHour remediations in any hour.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MaxPerHour *int32 `json:"maxPerHour,omitempty"`
	// maxPerDay remediations in any 24 hours.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxPerDay *int32 `json:"maxPerDay,omitempty"`
}

// EnvironmentSpec describes a set of namespaces that matter alike.
type EnvironmentSpec struct {
	// criticality is the criticality of the environment.
	// +required
	Criticality Criticality `json:"criticality,omitempty"`
	// namespaceSelector picks its namespaces. A namespace that two Environments
	// pick belongs to the more critical one.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="an empty selector selects every namespace; an Environment must say which are its own"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 32",message="at most 32 labels",fieldPath=".matchLabels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) > 32 || self.matchLabels.all(k, size(k) > 0 && size(k) <= 317 && size(self.matchLabels[k]) <= 63)",message="a label key has at most 317 characters and its value at most 63",fieldPath=".matchLabels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 32",message="at most 32 expressions",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, size(e.key) > 0 && size(e.key) <= 317 && (!has(e.values) || size(e.values) <= 64))",message="an expression has a label key of at most 317 characters and at most 64 values",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="operator is one of In, NotIn, Exists, DoesNotExist",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="In and NotIn need values, Exists and DoesNotExist take no values",fieldPath=".matchExpressions"
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector,omitzero"`
	// componentCriticality weighs components within the environment.
	// +optional
	// +listType=map
	// +listMapKey=component
	// +kubebuilder:validation:MaxItems=512
	ComponentCriticality []ComponentCriticality `json:"componentCriticality,omitempty"`
	// dependencies is the component graph for the blast radius.
	// +optional
	// +listType=map
	// +listMapKey=component
	// +kubebuilder:validation:MaxItems=512
	Dependencies []ComponentDependencies `json:"dependencies,omitempty"`
	// caps bounds all remediation policies of the environment together.
	// +optional
	Caps EnvironmentCaps `json:"caps,omitzero"`
	// releaseNotifications name the channels for rollouts of releases in its namespaces.
	// +optional
	ReleaseNotifications *ReleaseNotifications `json:"releaseNotifications,omitempty"`
}

// EnvironmentStatus lists the namespaces of an Environment.
type EnvironmentStatus struct {
	// conditions are Ready, Degraded (reason NamespacesOverlap), and Stalled while it is
	// True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// namespaces counts the namespaces that belong to it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Namespaces int32 `json:"namespaces"`
	// ledgerUID is the uid of its RemediationLedger. Another ledger of its name does not know
	// the earlier grants.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	LedgerUID string `json:"ledgerUID,omitempty"`
}

// Environment says how much a set of namespaces matters.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=plumbline
// +kubebuilder:printcolumn:name="Criticality",type=string,JSONPath=`.spec.criticality`
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.namespaces`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Environment struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec describes the environment.
	// +required
	Spec EnvironmentSpec `json:"spec,omitzero"`
	// status lists its namespaces.
	// +optional
	Status EnvironmentStatus `json:"status,omitempty,omitzero"`
}

// EnvironmentList is a list of Environments.
// +kubebuilder:object:root=true
type EnvironmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Environment `json:"items"`
}
