// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Plumbline's Kubernetes kinds, group plumbline.dev.
//
// Start with SpecGuard (what is guarded and who may change it) and Baseline
// (what was authorized for one object, and what is observed now). Every field
// is bounded and every enum closed, so that a bad object is refused by the API
// server with the path of the field; cross-field rules are CEL on the types,
// and rules about the caller are ValidatingAdmissionPolicies in the chart.
//
// +kubebuilder:object:generate=true
// +groupName=plumbline.dev
package v1alpha1
