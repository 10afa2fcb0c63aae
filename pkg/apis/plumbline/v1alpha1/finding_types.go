// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DriftType classifies a finding by the kind of change, from bad to mild.
// +kubebuilder:validation:Enum=Missing;Image;Scale;Unexpected;Other
type DriftType string

// The drift types.
const (
	// DriftMissing: the object or a container is gone.
	DriftMissing DriftType = "Missing"
	// DriftImage: an image differs.
	DriftImage DriftType = "Image"
	// DriftScale: replicas, paused or suspend differ.
	DriftScale DriftType = "Scale"
	// DriftUnexpected: something was added.
	DriftUnexpected DriftType = "Unexpected"
	// DriftOther: any other difference.
	DriftOther DriftType = "Other"
)

// FindingClass classifies a finding by the changed field; it sets the floor of the severity.
// +kubebuilder:validation:Enum=ObjectMissing;ObjectUnexpected;ContainerMissing;ImageRepository;ImageVersion;Execution;Security;Networking;Storage;Scale;Resources;TemplateMetadata;Other
type FindingClass string

// The finding classes.
const (
	// ClassObjectMissing: the object is gone.
	ClassObjectMissing FindingClass = "ObjectMissing"
	// ClassObjectUnexpected: the object itself was never authorized.
	ClassObjectUnexpected FindingClass = "ObjectUnexpected"
	// ClassContainerMissing: a container is gone.
	ClassContainerMissing FindingClass = "ContainerMissing"
	// ClassImageRepository: an image of another repository.
	ClassImageRepository FindingClass = "ImageRepository"
	// ClassImageVersion: another tag or digest of the same repository.
	ClassImageVersion FindingClass = "ImageVersion"
	// ClassExecution: command, args, working directory.
	ClassExecution FindingClass = "Execution"
	// ClassSecurity: securityContext, serviceAccount, host namespaces, hostPath.
	ClassSecurity FindingClass = "Security"
	// ClassNetworking: ports.
	ClassNetworking FindingClass = "Networking"
	// ClassStorage: volumes, mounts.
	ClassStorage FindingClass = "Storage"
	// ClassScale: replicas, paused, suspend.
	ClassScale FindingClass = "Scale"
	// ClassResources: requests and limits.
	ClassResources FindingClass = "Resources"
	// ClassTemplateMetadata: labels and annotations of the pod template.
	ClassTemplateMetadata FindingClass = "TemplateMetadata"
	// ClassOther: anything else.
	ClassOther FindingClass = "Other"
)

// Operation is the kind of change at a path.
// +kubebuilder:validation:Enum=Added;Removed;Changed
type Operation string

// The operations.
const (
	// OperationAdded: something is there that was not.
	OperationAdded Operation = "Added"
	// OperationRemoved: something is gone.
	OperationRemoved Operation = "Removed"
	// OperationChanged: a value, or the order of a list, differs.
	OperationChanged Operation = "Changed"
)

// ActorClass says how a writer stands to the guard.
// +kubebuilder:validation:Enum=Trusted;Expected;System;Untrusted;Unknown
type ActorClass string

// The actor classes.
const (
	// ActorTrusted: every guard trusts the writer.
	ActorTrusted ActorClass = "Trusted"
	// ActorExpected: an expectedWriters rule covers the writer and the path.
	ActorExpected ActorClass = "Expected"
	// ActorSystem: the garbage collector, the namespace controller, or Plumbline itself.
	ActorSystem ActorClass = "System"
	// ActorUntrusted: no guard names the user.
	ActorUntrusted ActorClass = "Untrusted"
	// ActorUnknown: no proof names the writer well enough.
	ActorUnknown ActorClass = "Unknown"
)

// ActorSource is the proof that names the actor.
// +kubebuilder:validation:Enum=WriterStamp;Admission;ManagedFields;None
type ActorSource string

// The actor sources, from strong to weak.
const (
	// ActorSourceWriterStamp: stored with the object by the API server itself.
	ActorSourceWriterStamp ActorSource = "WriterStamp"
	// ActorSourceAdmission: the webhook's record of exactly this write.
	ActorSourceAdmission ActorSource = "Admission"
	// ActorSourceManagedFields: a field manager, which a client may choose; evidence only.
	ActorSourceManagedFields ActorSource = "ManagedFields"
	// ActorSourceNone: no proof names the writer.
	ActorSourceNone ActorSource = "None"
)

// Actor is the writer of a change, as far as it is known.
type Actor struct {
	// user is the authenticated user name, or empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	User string `json:"user,omitempty"`
	// class is the class of the user under the active guards.
	// +required
	Class ActorClass `json:"class,omitempty"`
	// source is the proof that names the user.
	// +required
	Source ActorSource `json:"source,omitempty"`
	// fieldManager as recorded, a hint that a client may choose.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FieldManager string `json:"fieldManager,omitempty"`
	// breakGlassReason is why the user went past a Deny guard, in their own
	// words; empty unless this write gave the reason.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	BreakGlassReason string `json:"breakGlassReason,omitempty"`
}

// Finding is one difference from the authorized state.
type Finding struct {
	// path is the path of the difference: a JSON Pointer, keyed list elements as [name=app];
	// empty for the object as a whole.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
	// operation is the operation at the path.
	// +required
	Operation Operation `json:"operation,omitempty"`
	// type is the type of the drift.
	// +required
	Type DriftType `json:"type,omitempty"`
	// class is the class of the changed field.
	// +required
	Class FindingClass `json:"class,omitempty"`
	// before is the authorized value as JSON, cut and redacted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Before string `json:"before,omitempty"`
	// after is the observed value as JSON, cut and redacted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	After string `json:"after,omitempty"`
	// digest identifies the observed value in a keyed way. A changed value is told from an
	// unchanged one although both are redacted or cut.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`
	// actor is the writer of the change.
	// +required
	Actor Actor `json:"actor,omitzero"`
	// firstSeenTime is when this difference was first observed.
	// +required
	FirstSeenTime metav1.Time `json:"firstSeenTime,omitempty,omitzero"`
}

// Mask is a path that an expected writer moved and that is therefore not compared.
type Mask struct {
	// path is the path that is masked.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// value is the value that the expected writer left, as JSON, cut.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
	// rule is the name of the expectedWriters rule.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Rule string `json:"rule,omitempty"`
	// actor is the user that moved it.
	// +required
	Actor Actor `json:"actor,omitzero"`
}
