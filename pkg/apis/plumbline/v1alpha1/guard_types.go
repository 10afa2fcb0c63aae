// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GuardMode decides about an untrusted change at admission.
// +kubebuilder:validation:Enum=Audit;Warn;Deny
type GuardMode string

// The modes of a guard.
const (
	// GuardModeAudit records the change and stays silent.
	GuardModeAudit GuardMode = "Audit"
	// GuardModeWarn records the change and warns the writer.
	GuardModeWarn GuardMode = "Warn"
	// GuardModeDeny has the API server itself refuse the change; for
	// ClusterSpecGuards only.
	GuardModeDeny GuardMode = "Deny"
)

// ManagementPolicy says whether Plumbline may ever write the guarded objects.
// +kubebuilder:validation:Enum=Managed;Unmanaged
type ManagementPolicy string

// The management policies.
const (
	// Managed objects may be repaired when a RemediationPolicy says so.
	Managed ManagementPolicy = "Managed"
	// Unmanaged objects are observed and never written.
	Unmanaged ManagementPolicy = "Unmanaged"
)

// ObjectOverride bounds the effect of an object's own annotation on its checks.
// +kubebuilder:validation:Enum=Forbidden;Lengthen;Stop
type ObjectOverride string

// The object overrides, from strict to lax.
const (
	// ObjectOverrideForbidden ignores the annotation.
	ObjectOverrideForbidden ObjectOverride = "Forbidden"
	// ObjectOverrideLengthen lets it lengthen the period, not stop checks.
	ObjectOverrideLengthen ObjectOverride = "Lengthen"
	// ObjectOverrideStop lets it lengthen the period or stop checks.
	ObjectOverrideStop ObjectOverride = "Stop"
)

// AuthenticatedDeletes selects the records of a DELETE that are believed, and the records that
// may excuse a write or prove a stamp that the webhook set.
// +kubebuilder:validation:Enum=Required;NotRequired
type AuthenticatedDeletes string

// The values of AuthenticatedDeletes.
const (
	// AuthenticatedDeletesRequired believes only reviews that arrived with the
	// API server's client certificate.
	AuthenticatedDeletesRequired AuthenticatedDeletes = "Required"
	// AuthenticatedDeletesNotRequired believes every review.
	AuthenticatedDeletesNotRequired AuthenticatedDeletes = "NotRequired"
)

// ServiceAccountReference names one service account.
type ServiceAccountReference struct {
	// namespace is the namespace of the service account.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the service account.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
}

// Writers is a set of authenticated identities; a writer belongs to it when any
// entry matches. Names are compared exactly, there are no patterns.
type Writers struct {
	// users are the users by authenticated user name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Users []string `json:"users,omitempty"`
	// groups are the groups by name. A group counts only if the installation stamps it (chart
	// value guard.stampedGroups), because no other source proves it later.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Groups []string `json:"groups,omitempty"`
	// serviceAccounts are the service accounts by namespace and name.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ServiceAccounts []ServiceAccountReference `json:"serviceAccounts,omitempty"`
	// serviceAccountNamespaces are namespaces with service accounts that all belong.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ServiceAccountNamespaces []string `json:"serviceAccountNamespaces,omitempty"`
}

// ExpectedWriter may change the named fields without that being drift, e.g. an
// autoscaler that owns /spec/replicas.
type ExpectedWriter struct {
	// name is the name of the rule, shown where it applied.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// writers are those that the rule applies to.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.users) && size(self.users) > 0) || (has(self.groups) && size(self.groups) > 0) || (has(self.serviceAccounts) && size(self.serviceAccounts) > 0) || (has(self.serviceAccountNamespaces) && size(self.serviceAccountNamespaces) > 0)",message="a rule without writers never applies"
	Writers Writers `json:"writers,omitzero"`
	// paths are the fields that they may change: JSON Pointers; a segment may be "*" or, for a
	// keyed list, its key as in [name=app].
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(/(([^~/[]|~[0-6])([^~/]|~[0-6])*|[[](([^]~/,=]|~[0-6])*=([^]~/,]|~[0-6])*,){0,3}([^]~/,=]|~[0-6])*=([^]~/,]|~[0-6])*[]])){1,64}$')",message="a path such as /spec/replicas or /spec/containers/[name=app]/image, without empty segments; within a segment write ~0 for ~ and ~1 for /"
	Paths []string `json:"paths,omitempty"`
}

// Suspension stops a guard for a while, with a reason that others can read.
type Suspension struct {
	// reason is for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
	// endTime is when the guard works again.
	// +required
	EndTime metav1.Time `json:"endTime,omitempty,omitzero"`
}

// GuardSpec is the part that SpecGuard and ClusterSpecGuard share.
//
// +kubebuilder:validation:XValidation:rule="(has(self.resources) && size(self.resources) > 0) || (has(self.categories) && size(self.categories) > 0)",message="name at least one kind in resources, or one category in categories",fieldPath=".resources",reason=FieldValueRequired
type GuardSpec struct {
	// resources are single kinds that are guarded.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=32
	Resources []GuardedResource `json:"resources,omitempty"`
	// categories are lists of kinds that are guarded: Workloads (Deployments, StatefulSets,
	// DaemonSets, CronJobs), Networking (Services, Ingresses, NetworkPolicies), RBAC (Roles,
	// RoleBindings, ServiceAccounts), Configuration (ConfigMaps, LimitRanges, ResourceQuotas),
	// Availability (HorizontalPodAutoscalers, PodDisruptionBudgets) and Storage
	// (PersistentVolumeClaims). A later version may add kinds to a category.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=6
	Categories []ResourceCategory `json:"categories,omitempty"`
	// selector picks objects by label. If unset, every object of the resources is guarded. An
	// empty selector is refused: it reads like a mistake.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="an empty selector selects everything and reads like a mistake; leave it out to select everything"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 32",message="at most 32 labels",fieldPath=".matchLabels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) > 32 || self.matchLabels.all(k, size(k) > 0 && size(k) <= 317 && size(self.matchLabels[k]) <= 63)",message="a label key has at most 317 characters and its value at most 63",fieldPath=".matchLabels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 32",message="at most 32 expressions",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, size(e.key) > 0 && size(e.key) <= 317 && (!has(e.values) || size(e.values) <= 64))",message="an expression has a label key of at most 317 characters and at most 64 values",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="operator is one of In, NotIn, Exists, DoesNotExist",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="In and NotIn need values, Exists and DoesNotExist take no values",fieldPath=".matchExpressions"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// mode decides about an untrusted change at admission.
	// +optional
	// +default="Audit"
	Mode GuardMode `json:"mode,omitempty"`
	// trustedWriters are the users with authorized changes: the paths they change become the
	// new baseline.
	// +optional
	TrustedWriters Writers `json:"trustedWriters,omitzero"`
	// expectedWriters may change some fields without that being drift.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ExpectedWriters []ExpectedWriter `json:"expectedWriters,omitempty"`
	// ignore lists paths that are never compared, written as in expectedWriters.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(/(([^~/[]|~[0-6])([^~/]|~[0-6])*|[[](([^]~/,=]|~[0-6])*=([^]~/,]|~[0-6])*,){0,3}([^]~/,=]|~[0-6])*=([^]~/,]|~[0-6])*[]])){1,64}$')",message="a path such as /spec/replicas or /spec/containers/[name=app]/image, without empty segments; within a segment write ~0 for ~ and ~1 for /"
	Ignore []string `json:"ignore,omitempty"`
	// resyncPeriod is the time between two scheduled checks of an object; 0s switches them off.
	// If unset, GuardDefaults decide.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && (duration(self) == duration('0s') || (duration(self) >= duration('1s') && duration(self) <= duration('8760h')))",message="a duration such as 30m or 3h, from 1s to 8760h, or 0s for never"
	ResyncPeriod *metav1.Duration `json:"resyncPeriod,omitempty"`
	// managementPolicy says whether the objects may ever be repaired. If unset, GuardDefaults
	// decide; if they are unset too, Managed.
	// +optional
	ManagementPolicy ManagementPolicy `json:"managementPolicy,omitempty"`
	// objectOverride bounds the effect of an object's annotation on its checks.
	// +optional
	// +default="Forbidden"
	ObjectOverride ObjectOverride `json:"objectOverride,omitempty"`
	// authenticatedDeletes selects the records of a DELETE that are believed, and the records
	// that may excuse a write or prove a stamp that the webhook set.
	// +optional
	// +default="NotRequired"
	AuthenticatedDeletes AuthenticatedDeletes `json:"authenticatedDeletes,omitempty"`
	// suspend stops the guard until a time, with a reason.
	// +optional
	Suspend *Suspension `json:"suspend,omitempty"`
	// notifications name the channels for drift of the objects that this guard selects.
	// +optional
	Notifications *GuardNotifications `json:"notifications,omitempty"`
}

// GuardStatus counts the objects and the findings of a guard.
type GuardStatus struct {
	// conditions are Ready, Degraded (reason MassDrift), Suspended, on ClusterSpecGuards
	// Enforced, and Reconciling or Stalled while they are True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// objects counts the guarded objects.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Objects int32 `json:"objects"`
	// drifted counts those in state Drifted or Missing.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Drifted int32 `json:"drifted"`
	// unknown counts those in state Unknown; their Baselines say why.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unknown int32 `json:"unknown"`
	// massDrift lists the frozen namespaces and causes while the guard is Degraded for
	// the reason MassDrift. A guard with that condition and without massDrift freezes
	// all of its objects.
	// +optional
	MassDrift *MassDrift `json:"massDrift,omitempty"`
}

// SpecGuard guards objects of its own namespace.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=plumbline
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Drifted",type=integer,JSONPath=`.status.drifted`
// +kubebuilder:printcolumn:name="Unknown",type=integer,JSONPath=`.status.unknown`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SpecGuard struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec selects the guarded objects and their trusted writers.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Deny'",message="only a ClusterSpecGuard may deny: any writer of a SpecGuard could lift it",fieldPath=".mode"
	Spec GuardSpec `json:"spec,omitzero"`
	// status counts the objects and the findings of the guard.
	// +optional
	Status GuardStatus `json:"status,omitempty,omitzero"`
}

// SpecGuardList is a list of SpecGuards.
// +kubebuilder:object:root=true
type SpecGuardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SpecGuard `json:"items"`
}

// ClusterGuardSpec adds the choice of namespaces to a guard.
type ClusterGuardSpec struct {
	GuardSpec `json:",inline"`
	// namespaceSelector picks the namespaces. If unset, all but kube-system, kube-node-lease,
	// kube-public and Plumbline's own.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="an empty selector selects everything and reads like a mistake; leave it out to select everything"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 32",message="at most 32 labels",fieldPath=".matchLabels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) > 32 || self.matchLabels.all(k, size(k) > 0 && size(k) <= 317 && size(self.matchLabels[k]) <= 63)",message="a label key has at most 317 characters and its value at most 63",fieldPath=".matchLabels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 32",message="at most 32 expressions",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, size(e.key) > 0 && size(e.key) <= 317 && (!has(e.values) || size(e.values) <= 64))",message="an expression has a label key of at most 317 characters and at most 64 values",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="operator is one of In, NotIn, Exists, DoesNotExist",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="In and NotIn need values, Exists and DoesNotExist take no values",fieldPath=".matchExpressions"
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// acceptBy lists the only writers that may accept objects that this guard selects, besides
	// the permissions of RBAC. If unset, the rights decide. A group counts for a member that
	// names the group in accept.requestedByGroups.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.users) && size(self.users) > 0) || (has(self.groups) && size(self.groups) > 0) || (has(self.serviceAccounts) && size(self.serviceAccounts) > 0) || (has(self.serviceAccountNamespaces) && size(self.serviceAccountNamespaces) > 0)",message="an empty list would let no user accept; leave acceptBy out to let the rights decide"
	AcceptBy *Writers `json:"acceptBy,omitempty"`
	// acceptByAuthor decides whether the writer of a change may accept the change. With Forbidden,
	// another user has to, and a change of an unknown writer cannot be accepted. If unset, Allowed.
	// For an acceptance with an end, see SpecGuardException.
	// +optional
	AcceptByAuthor Permission `json:"acceptByAuthor,omitempty"`
	// exceptions decides whether SpecGuardExceptions of a namespace apply to the objects that this
	// guard selects. If unset, Forbidden.
	// +optional
	Exceptions GuardExceptions `json:"exceptions,omitempty"`
}

// ClusterSpecGuard guards objects in many namespaces; it belongs to the platform team.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=plumbline
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Drifted",type=integer,JSONPath=`.status.drifted`
// +kubebuilder:printcolumn:name="Unknown",type=integer,JSONPath=`.status.unknown`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterSpecGuard struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec selects the guarded objects and their trusted writers.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Deny' || !has(self.selector)",message="a guard that denies selects by namespace and kind: each writer of an object can edit its labels, and a write of /scale has no labels",fieldPath=".selector"
	// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Deny' || !has(self.expectedWriters) || self.expectedWriters.all(w, w.paths.all(p, p == '/spec/replicas'))",message="a guard that denies leaves no field but /spec/replicas to expected writers",fieldPath=".expectedWriters"
	Spec ClusterGuardSpec `json:"spec,omitzero"`
	// status counts the objects and the findings of the guard.
	// +optional
	Status GuardStatus `json:"status,omitempty,omitzero"`
}

// ClusterSpecGuardList is a list of ClusterSpecGuards.
// +kubebuilder:object:root=true
type ClusterSpecGuardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterSpecGuard `json:"items"`
}
