// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GuardExceptions decides whether SpecGuardExceptions of tenants apply to the objects of a
// ClusterSpecGuard.
// +kubebuilder:validation:Enum=Forbidden;Allowed
type GuardExceptions string

// The values of GuardExceptions.
const (
	// GuardExceptionsForbidden ignores the exceptions of tenants.
	GuardExceptionsForbidden GuardExceptions = "Forbidden"
	// GuardExceptionsAllowed applies the exceptions of tenants.
	GuardExceptionsAllowed GuardExceptions = "Allowed"
)

// SpecGuardExceptionSpec names objects and paths that writers may change for a limited time.
//
// +kubebuilder:validation:XValidation:rule="(has(self.resources) && size(self.resources) > 0) || (has(self.categories) && size(self.categories) > 0)",message="name at least one kind in resources, or one category in categories",fieldPath=".resources",reason=FieldValueRequired
type SpecGuardExceptionSpec struct {
	// resources are single kinds of the objects.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=16
	Resources []GuardedResource `json:"resources,omitempty"`
	// categories are lists of kinds of the objects, as in a guard.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=6
	Categories []ResourceCategory `json:"categories,omitempty"`
	// names are the names of the objects. If unset, the exception covers all objects of the kinds
	// in the namespace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9.:]*[a-z0-9])?$`
	Names []string `json:"names,omitempty"`
	// paths are the fields that the writers may change, written as in expectedWriters of a guard.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(/(([^~/[]|~[0-6])([^~/]|~[0-6])*|[[](([^]~/,=]|~[0-6])*=([^]~/,]|~[0-6])*,){0,3}([^]~/,=]|~[0-6])*=([^]~/,]|~[0-6])*[]])){1,64}$')",message="a path such as /spec/replicas or /spec/containers/[name=app]/image, without empty segments; within a segment write ~0 for ~ and ~1 for /"
	Paths []string `json:"paths,omitempty"`
	// writers are the writers that may change the fields. If unset, each writer with a proven name.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.users) && size(self.users) > 0) || (has(self.groups) && size(self.groups) > 0) || (has(self.serviceAccounts) && size(self.serviceAccounts) > 0) || (has(self.serviceAccountNamespaces) && size(self.serviceAccountNamespaces) > 0)",message="an empty list would let no writer change the fields; leave writers out to let each writer"
	Writers *Writers `json:"writers,omitempty"`
	// endTime is when the exception ends, at most 90 days after its creation. From then on, the
	// values that the writers left are drift.
	// +required
	EndTime metav1.Time `json:"endTime,omitempty,omitzero"`
	// ticket is the number or the address of a record outside the cluster that explains the exception.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[ -~]+$`
	Ticket string `json:"ticket,omitempty"`
	// reason is for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
	// requestedBy must be the authenticated user that creates the exception or changes its spec.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`
}

// SpecGuardExceptionStatus tells whether the exception applies, and to how many objects.
type SpecGuardExceptionStatus struct {
	// conditions are Ready, and Stalled while the exception is invalid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// objects counts the objects with a value that this exception excuses.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Objects int32 `json:"objects"`
}

// SpecGuardException lets writers change fields of guarded objects for a limited time. A
// changed value is not authorized: at the end of the exception it is drift again.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=plumbline
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50",message="metadata.name has at most 50 characters"
// +kubebuilder:printcolumn:name="Ticket",type=string,JSONPath=`.spec.ticket`
// +kubebuilder:printcolumn:name="Requested-By",type=string,JSONPath=`.spec.requestedBy`
// +kubebuilder:printcolumn:name="End",type=string,JSONPath=`.spec.endTime`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SpecGuardException struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec names the objects, the paths and the end.
	// +required
	Spec SpecGuardExceptionSpec `json:"spec,omitzero"`
	// status tells whether the exception applies.
	// +optional
	Status SpecGuardExceptionStatus `json:"status,omitempty,omitzero"`
}

// SpecGuardExceptionList is a list of SpecGuardExceptions.
// +kubebuilder:object:root=true
type SpecGuardExceptionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SpecGuardException `json:"items"`
}
