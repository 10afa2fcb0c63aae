// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LaggardPolicy says what becomes of a release when its deadline is over and proxies have
// not confirmed it.
// +kubebuilder:validation:Enum=Hold;Proceed
type LaggardPolicy string

// The policies.
const (
	// LaggardsHold has the release wait, Stalled with the reason DeadlineExceeded.
	LaggardsHold LaggardPolicy = "Hold"
	// LaggardsProceed has the release be Ready without the laggards, which the status
	// names, if at least one proxy has confirmed it.
	LaggardsProceed LaggardPolicy = "Proceed"
)

// ConfirmationNamespaces says whose proxies have to confirm a release.
// +kubebuilder:validation:Enum=All;Same
type ConfirmationNamespaces string

// The namespaces.
const (
	// ConfirmedByAll are all namespaces whose proxies route requests to the Service.
	ConfirmedByAll ConfirmationNamespaces = "All"
	// ConfirmedBySame is the namespace of the release. Gateways have to confirm as well.
	ConfirmedBySame ConfirmationNamespaces = "Same"
)

// Confirmation says which proxies have to confirm what is in force, and how long the
// release waits for them.
type Confirmation struct {
	// deadline for all proxies to confirm what is in force, from when it was decided.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('10s') && duration(self) <= duration('168h')",message="a duration such as 10m, from 10s to 168h"
	Deadline *metav1.Duration `json:"deadline,omitempty"`
	// onLaggard says what happens when the deadline is over and proxies have not confirmed:
	// Hold waits for them, Proceed goes on without them if at least one proxy has confirmed.
	// +optional
	// +default="Hold"
	OnLaggard LaggardPolicy `json:"onLaggard,omitempty"`
	// namespaces whose proxies have to confirm: All that route requests to the Service, or
	// the Same namespace as the release and the gateways.
	// +optional
	// +default="All"
	Namespaces ConfirmationNamespaces `json:"namespaces,omitempty"`
}
