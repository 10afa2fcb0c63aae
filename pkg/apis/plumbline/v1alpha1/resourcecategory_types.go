// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ResourceCategory names a fixed list of built-in namespaced kinds. The chart value
// guard.resources takes the same names.
// +kubebuilder:validation:Enum=Workloads;Networking;RBAC;Configuration;Availability;Storage
type ResourceCategory string

// The categories of kinds.
const (
	// CategoryWorkloads contains Deployments, StatefulSets, DaemonSets and CronJobs.
	CategoryWorkloads ResourceCategory = "Workloads"
	// CategoryNetworking contains Services, Ingresses and NetworkPolicies.
	CategoryNetworking ResourceCategory = "Networking"
	// CategoryRBAC contains Roles, RoleBindings and ServiceAccounts.
	CategoryRBAC ResourceCategory = "RBAC"
	// CategoryConfiguration contains ConfigMaps, LimitRanges and ResourceQuotas.
	CategoryConfiguration ResourceCategory = "Configuration"
	// CategoryAvailability contains HorizontalPodAutoscalers and PodDisruptionBudgets.
	CategoryAvailability ResourceCategory = "Availability"
	// CategoryStorage contains PersistentVolumeClaims.
	CategoryStorage ResourceCategory = "Storage"
)
