// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TimeoutPolicy decides about a release when its deadline is over and proxies have not
// acknowledged it.
// +kubebuilder:validation:Enum=Hold;Proceed
type TimeoutPolicy string

// The policies.
const (
	// TimeoutHold has the release wait, Stalled with the reason DeadlineExceeded.
	TimeoutHold TimeoutPolicy = "Hold"
	// TimeoutProceed lets the release be Ready without the proxies that are out of sync, if at
	// least one proxy has acknowledged it. The status names these proxies.
	TimeoutProceed TimeoutPolicy = "Proceed"
)

// AcknowledgmentNamespaces selects the proxies that have to acknowledge a release.
// +kubebuilder:validation:Enum=All;Same
type AcknowledgmentNamespaces string

// The namespaces.
const (
	// AcknowledgedByAll selects all namespaces with proxies that route requests to the Service.
	AcknowledgedByAll AcknowledgmentNamespaces = "All"
	// AcknowledgedBySame is the namespace of the release. Gateways have to acknowledge as well.
	AcknowledgedBySame AcknowledgmentNamespaces = "Same"
)

// Acknowledgment selects the proxies that have to acknowledge the effective split, and bounds
// the wait of the release for them.
type Acknowledgment struct {
	// deadline is the time in which all proxies have to acknowledge the effective split, from
	// its decision.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('10s') && duration(self) <= duration('168h')",message="a duration such as 10m, from 10s to 168h"
	Deadline *metav1.Duration `json:"deadline,omitempty"`
	// onTimeout decides when the deadline is over and proxies have not acknowledged. Hold waits
	// for them. Proceed goes on without them if at least one proxy has acknowledged.
	// +optional
	// +default="Hold"
	OnTimeout TimeoutPolicy `json:"onTimeout,omitempty"`
	// namespaces selects the proxies that have to acknowledge. All selects the namespaces that
	// route requests to the Service, Same the namespace of the release and the gateways.
	// +optional
	// +default="All"
	Namespaces AcknowledgmentNamespaces `json:"namespaces,omitempty"`
}
