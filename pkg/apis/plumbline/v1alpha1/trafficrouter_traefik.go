// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// TraefikRouter is all Traefiks that poll one dynamic configuration from the discovery server.
type TraefikRouter struct {
	// tokenSecretRef names the bearer token that a Traefik sends with each poll.
	// +required
	TokenSecretRef RouterSecretKey `json:"tokenSecretRef,omitzero"`
	// programs are the Traefiks that poll. A split is effective when each has it.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Programs []TraefikProgram `json:"programs,omitempty"`
	// ports are the ports of Services with requests that come by these Traefiks.
	// +required
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=serviceName
	// +listMapKey=port
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Ports []TraefikPort `json:"ports,omitempty"`
}

// TraefikProgram is one Traefik.
//
// +kubebuilder:validation:XValidation:rule="has(self.user) == has(self.passwordSecretRef)",message="basic authentication has a user and a password: give user and passwordSecretRef, or neither"
// +kubebuilder:validation:XValidation:rule="!has(self.user) || has(self.url)",message="a user is for the API: give url"
type TraefikProgram struct {
	// name tells the Traefik apart from the others, for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9./]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// url is the address of the API and of the metrics, such as http://10.0.0.1:8080. Without it the
	// split is Accepted at best, and requests are not counted.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s@]+$`
	URL string `json:"url,omitempty"`
	// user is the user of basic authentication.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^:]+$`
	User string `json:"user,omitempty"`
	// passwordSecretRef names the password of the user.
	// +optional
	PasswordSecretRef *RouterSecretKey `json:"passwordSecretRef,omitempty"`
}

// TraefikProtocol is the protocol between Traefik and the endpoints.
// +kubebuilder:validation:Enum=HTTP1;HTTP2
type TraefikProtocol string

// The protocols.
const (
	// TraefikHTTP1 is HTTP/1.1.
	TraefikHTTP1 TraefikProtocol = "HTTP1"
	// TraefikHTTP2 is HTTP/2 without TLS, as gRPC needs it.
	TraefikHTTP2 TraefikProtocol = "HTTP2"
)

// TraefikPort is one port of a Service with requests that come by Traefik.
type TraefikPort struct {
	// namespace is the namespace of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// serviceName is the name of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	ServiceName string `json:"serviceName,omitempty"`
	// port is the port of the Service.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// protocol is the protocol between Traefik and the endpoints.
	// +optional
	// +default="HTTP1"
	Protocol TraefikProtocol `json:"protocol,omitempty"`
	// route selects the requests for the Service. If unset, a router of the user names the service
	// plb_NAMESPACE_SERVICE_PORT@http, and releases cannot match headers.
	// +optional
	Route *TraefikRoute `json:"route,omitempty"`
}

// TraefikRoute selects requests in the language of Traefik.
type TraefikRoute struct {
	// rule is the rule of the router, such as Host(`shop.example`).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Rule string `json:"rule,omitempty"`
	// entryPoints are entry points of the static configuration of Traefik. If unset, all of them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	EntryPoints []string `json:"entryPoints,omitempty"`
	// priority is the priority of the router; if unset, the length of the rule.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`
}
