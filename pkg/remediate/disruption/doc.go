// SPDX-License-Identifier: Apache-2.0

// Package disruption says which repairs remove ready pods that a PodDisruptionBudget protects.
//
// Kubernetes asks budgets for evictions alone, and a rolling update passes them. A repair is a
// disruption that Plumbline chooses the time of, so Plumbline asks:
// https://kubernetes.io/docs/concepts/workloads/pods/disruptions/
package disruption
