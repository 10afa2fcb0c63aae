// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EffectHashes names a hash of another system that is taken beside the guarded hash.
// +kubebuilder:validation:Enum=ddem002
// +kubebuilder:validation:MaxLength=16
type EffectHashes string

// HashesDDEM002 is the hash of DD-EM-002, over all of an object's spec.
const HashesDDEM002 EffectHashes = "ddem002"

// RemediationEffectiveness says how the effect of a remediation is measured.
//
// +kubebuilder:validation:XValidation:rule="!has(self.stabilization) || !has(self.validity) || duration(self.stabilization) < duration(self.validity)",message="stabilization must be shorter than validity: the components are measured between the two",fieldPath=".stabilization"
type RemediationEffectiveness struct {
	// stabilization is how long a workload is left alone before it is measured; at most
	// safety.cooldown. If unset, it is safety.cooldown, at least 30s and at most 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('10s') && duration(self) <= duration('1h')",message="a duration such as 5m, from 10s to 1h"
	Stabilization *metav1.Duration `json:"stabilization,omitempty"`
	// validity is how long an answer that is missing is waited for.
	// +optional
	// +default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('30s') && duration(self) <= duration('24h')",message="a duration such as 30m, from 30s to 24h"
	Validity *metav1.Duration `json:"validity,omitempty"`
	// alertCheckDelay is how long after the stabilization alerts are asked for: an alert
	// resolves later than its cause. If unset, it is 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="a duration such as 5m, from 0s to 1h"
	AlertCheckDelay *metav1.Duration `json:"alertCheckDelay,omitempty"`
	// propagationDelay is how long a write needs to arrive, as through another tool. If unset,
	// it is 0s: the write itself is the arrival.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="a duration such as 3m, from 0s to 1h"
	PropagationDelay *metav1.Duration `json:"propagationDelay,omitempty"`
	// alerts say which alerts are about a target. If unset, an alert of the namespace is about
	// the target by its labels: deployment (the kind in lower case) or workload has the
	// target's name, or pod has the name of one of its pods.
	// +optional
	Alerts *EffectAlerts `json:"alerts,omitempty"`
	// metrics are the metrics of a target that are compared before the drift, during it, and
	// after the write. If unset, no metrics are assessed.
	// +optional
	Metrics *EffectMetrics `json:"metrics,omitempty"`
	// hashes names a hash of another system that the executor takes before and after each write,
	// beside the guarded hash: ddem002. If unset, the guarded hash alone is taken.
	// +optional
	Hashes EffectHashes `json:"hashes,omitempty"`
}
