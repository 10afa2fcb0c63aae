// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// GuardedResource names one namespaced kind, built-in or custom, never Secrets.
//
// The built-in groups are closed lists. The API server rejects a misspelt or cluster-scoped kind
// here, with its path; otherwise no object would be guarded, without notice. Secrets are
// excluded, because a Baseline would have to hold their values. The bookkeeping of the cluster
// is excluded too (Event, Lease, Endpoints, EndpointSlice, CSIStorageCapacity, LeaseCandidate),
// because no user authorizes those writes. Whether a custom kind exists is known only at run
// time; the guard's conditions say so.
//
// +kubebuilder:validation:XValidation:rule="self.apiVersion != 'v1' || self.kind != 'Secret'",message="Secrets are never guarded: their values would have to be stored",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="self.apiVersion.contains('/') || self.kind in ['Secret', 'ConfigMap', 'LimitRange', 'PersistentVolumeClaim', 'Pod', 'PodTemplate', 'ReplicationController', 'ResourceQuota', 'Service', 'ServiceAccount']",message="not a core kind that can be guarded: one of ConfigMap, LimitRange, PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, ResourceQuota, Service, ServiceAccount",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('apps/') || self.kind in ['ControllerRevision', 'DaemonSet', 'Deployment', 'ReplicaSet', 'StatefulSet']",message="not a kind of apps that can be guarded: one of ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('autoscaling/') || self.kind == 'HorizontalPodAutoscaler'",message="not a kind of autoscaling that can be guarded: HorizontalPodAutoscaler is the only one",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('batch/') || self.kind in ['CronJob', 'Job']",message="not a kind of batch that can be guarded: one of CronJob, Job",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('policy/') || self.kind == 'PodDisruptionBudget'",message="not a kind of policy that can be guarded: PodDisruptionBudget is the only one",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('networking.k8s.io/') || self.kind in ['Ingress', 'NetworkPolicy']",message="not a kind of networking.k8s.io that can be guarded: one of Ingress, NetworkPolicy",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('rbac.authorization.k8s.io/') || self.kind in ['Role', 'RoleBinding']",message="not a kind of rbac.authorization.k8s.io that can be guarded: one of Role, RoleBinding",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('resource.k8s.io/') || self.kind in ['ResourceClaim', 'ResourceClaimTemplate']",message="not a kind of resource.k8s.io that can be guarded: one of ResourceClaim, ResourceClaimTemplate",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('scheduling.k8s.io/') || self.kind in ['PodGroup', 'Workload']",message="not a kind of scheduling.k8s.io that can be guarded: one of PodGroup, Workload",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.matches('^(admissionregistration|apiextensions|apiregistration|authentication|authorization|certificates|coordination|discovery|events|flowcontrol[.]apiserver|internal[.]apiserver|node|storage|storagemigration)[.]k8s[.]io/')",message="this group has no namespaced kind that can be guarded",fieldPath=".kind"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.contains('/') || self.apiVersion.matches('^([^/]*[.][^/]*|apps|autoscaling|batch|policy)/')",message="a group without a dot is built in: one of apps, autoscaling, batch, policy",fieldPath=".apiVersion"
// +kubebuilder:validation:XValidation:rule="self.apiVersion.contains('/') || self.apiVersion == 'v1'",message="the core group has one version: v1",fieldPath=".apiVersion"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('plumbline.dev/')",message="Plumbline's own kinds are not guarded: every Baseline would need a Baseline",fieldPath=".apiVersion"
type GuardedResource struct {
	// apiVersion is the API version in which the objects are read and hashed, e.g. apps/v1.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[a-z]([-a-z0-9]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion,omitempty"`
	// kind is the kind of the objects, e.g. Deployment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind,omitempty"`
}
