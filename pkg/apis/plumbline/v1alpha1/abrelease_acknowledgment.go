// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TimeoutPolicy says what becomes of a release when its deadline is over and proxies have
// not acknowledged it.
// +kubebuilder:validation:Enum=Hold;Proceed
type TimeoutPolicy string

// The policies.
const (
	// TimeoutHold has the release wait, Stalled with the reason DeadlineExceeded.
	TimeoutHold TimeoutPolicy = "Hold"
	// TimeoutProceed has the release be Ready without the proxies that are out of sync, which the status
	// names, if at least one proxy has acknowledged it.
	TimeoutProceed TimeoutPolicy = "Proceed"
)

// AcknowledgmentNamespaces says whose proxies have to acknowledge a release.
// +kubebuilder:validation:Enum=All;Same
type AcknowledgmentNamespaces string

// The namespaces.
const (
	// AcknowledgedByAll are all namespaces whose proxies route requests to the Service.
	AcknowledgedByAll AcknowledgmentNamespaces = "All"
	// AcknowledgedBySame is the namespace of the release. Gateways have to acknowledge as well.
	AcknowledgedBySame AcknowledgmentNamespaces = "Same"
)

// Acknowledgment says which proxies have to acknowledge what is in force, and how long the
// release waits for them.
type Acknowledgment struct {
	// deadline for all proxies to acknowledge what is in force, from when it was decided.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('10s') && duration(self) <= duration('168h')",message="a duration such as 10m, from 10s to 168h"
	Deadline *metav1.Duration `json:"deadline,omitempty"`
	// onTimeout says what happens when the deadline is over and proxies have not acknowledged:
	// Hold waits for them, Proceed goes on without them if at least one proxy has acknowledged.
	// +optional
	// +default="Hold"
	OnTimeout TimeoutPolicy `json:"onTimeout,omitempty"`
	// namespaces whose proxies have to acknowledge: All that route requests to the Service, or
	// the Same namespace as the release and the gateways.
	// +optional
	// +default="All"
	Namespaces AcknowledgmentNamespaces `json:"namespaces,omitempty"`
}
