// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RouterMesh is the name by which spec.routers of a release names the proxies of the mesh. No TrafficRouter can have
// the name.
const RouterMesh = "mesh"

// TrafficRouterType is the kind of program or API that carries splits out.
// +kubebuilder:validation:Enum=Webhook;GatewayAPI;Traefik
type TrafficRouterType string

// The types. Each has at most one block in the spec of a TrafficRouter.
const (
	// TrafficRouterWebhook is a receiver of signed requests.
	TrafficRouterWebhook TrafficRouterType = "Webhook"
	// TrafficRouterGatewayAPI is the weights of routes that releases name. It has no block.
	TrafficRouterGatewayAPI TrafficRouterType = "GatewayAPI"
	// TrafficRouterTraefik is Traefiks that poll their dynamic configuration.
	TrafficRouterTraefik TrafficRouterType = "Traefik"
)

// ReceiverCapability is an ability that a receiver can have beyond the division of requests.
// +kubebuilder:validation:Enum=sticky;anonymousVisitors;headerMap;override
type ReceiverCapability string

// The abilities of receivers, by the names of traffic.Capability.
const (
	// ReceiverSticky keeps visitors on a variation by a header or a cookie, also while its share grows.
	ReceiverSticky ReceiverCapability = "sticky"
	// ReceiverAnonymousVisitors gives a cookie to visitors without one, and keeps them by the cookie.
	ReceiverAnonymousVisitors ReceiverCapability = "anonymousVisitors"
	// ReceiverHeaderMap sends certain values of a header to certain variations, before the weights.
	ReceiverHeaderMap ReceiverCapability = "headerMap"
	// ReceiverOverride sends a request to the variation that a header names, before the header match.
	ReceiverOverride ReceiverCapability = "override"
)

// RouterSecretKey names a key of a Secret in the namespace of Plumbline.
type RouterSecretKey struct {
	// name is the name of the Secret. The installation has to list it in routers.secrets.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// key is the key in the data of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// WebhookRouter is a receiver of signed requests that carries splits out.
type WebhookRouter struct {
	// url is the address of the receiver. Plain http needs notifications.plainHTTP of the
	// installation, and a private address needs notifications.allowedNetworks.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s@]+$`
	URL string `json:"url,omitempty"`
	// secretRef names the key that signs requests by Standard Webhooks: whsec_ and base64.
	// +required
	SecretRef RouterSecretKey `json:"secretRef,omitzero"`
	// capabilities are the abilities that the receiver has beyond weights. A release that needs
	// another one is refused by its name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Capabilities []ReceiverCapability `json:"capabilities,omitempty"`
}

// TrafficRouterSpec says how a router is reached, and which namespaces can use it.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Webhook') == has(self.webhook) && (self.type == 'Traefik') == has(self.traefik)",message="give the block of the type, and no other: webhook with type Webhook, traefik with type Traefik, none with type GatewayAPI"
type TrafficRouterSpec struct {
	// type is the kind of program or API that carries splits out.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type is immutable: make another TrafficRouter"
	Type TrafficRouterType `json:"type,omitempty"`
	// webhook is the receiver of type Webhook.
	// +optional
	Webhook *WebhookRouter `json:"webhook,omitempty"`
	// traefik is the Traefiks of type Traefik.
	// +optional
	Traefik *TraefikRouter `json:"traefik,omitempty"`
	// allowedNamespaces selects the namespaces with releases that can name the router. An empty
	// selector selects all namespaces; if unset, none.
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`
	// settle is how long after the router has accepted a split the split counts as effective. It
	// has no meaning where the router proves a split.
	// +optional
	// +default="0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="a duration such as 30s, from 0s to 1h"
	Settle *metav1.Duration `json:"settle,omitempty"`
}

// RouterRefusal is the last request to a router that failed.
type RouterRefusal struct {
	// message is the reason, in the words of the router where it gave some.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// refusalTime is when the request failed.
	// +required
	RefusalTime metav1.Time `json:"refusalTime,omitzero"`
}

// TrafficRouterStatus is what is known of a router.
type TrafficRouterStatus struct {
	// conditions are the conditions Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that the status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// capabilities are the names of the abilities of the router.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Capabilities []string `json:"capabilities,omitempty"`
	// knowledge is the best knowledge about a split that the router can have.
	// +optional
	Knowledge AcknowledgmentState `json:"knowledge,omitempty"`
	// version is the version that the router tells of itself.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
	// lastRefusal is the last request that failed since the present replica leads.
	// +optional
	LastRefusal *RouterRefusal `json:"lastRefusal,omitempty"`
}

// TrafficRouter is a program or an API that divides requests as releases say, beside or instead of the mesh.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=trafficrouters,scope=Cluster,categories=plumbline,shortName=trouter
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Knowledge",type=string,JSONPath=`.status.knowledge`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'mesh'",message="the name mesh means the proxies of the mesh: use another name"
type TrafficRouter struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the router.
	// +required
	Spec TrafficRouterSpec `json:"spec,omitzero"`
	// status is what is known of the router.
	// +optional
	Status TrafficRouterStatus `json:"status,omitempty,omitzero"`
}

// TrafficRouterList is a list of TrafficRouters.
// +kubebuilder:object:root=true
type TrafficRouterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrafficRouter `json:"items"`
}
