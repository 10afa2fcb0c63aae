// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Plumbline's Kubernetes kinds, group plumbline.dev.
//
// Start with SpecGuard (the guarded kinds and their trusted writers) and Baseline (the
// authorized content of one object, and its observed state). Every field is bounded and every
// enum closed, so that the API server rejects a bad object with the path of the field.
// Cross-field rules are CEL on the types, and rules about the caller are
// ValidatingAdmissionPolicies in the chart.
//
// +kubebuilder:object:generate=true
// +groupName=plumbline.dev
package v1alpha1
