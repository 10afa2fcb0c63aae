// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReleaseRouter names a router that carries out the split of a release.
//
// +kubebuilder:validation:XValidation:rule="self.name != 'mesh' || !has(self.gatewayAPI)",message="the mesh has no route: leave gatewayAPI out",fieldPath=".gatewayAPI"
// +kubebuilder:validation:XValidation:rule="has(self.gatewayAPI) == has(self.services)",message="the backends of a route are Services: give gatewayAPI and the Service of each variation, or neither",fieldPath=".services"
// +kubebuilder:validation:XValidation:rule="!has(self.services) || self.services.all(s, self.services.filter(o, o.serviceName == s.serviceName && o.port == s.port).size() == 1)",message="two variations have the same Service and port: give each variation a Service of its own",fieldPath=".services"
type ReleaseRouter struct {
	// name is the name of a TrafficRouter, or mesh for the proxies of the mesh.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// gatewayAPI is the route with the weights. A TrafficRouter of type GatewayAPI needs one, and
	// no other type has one.
	// +optional
	GatewayAPI *ReleaseRoute `json:"gatewayAPI,omitempty"`
	// services are the Services of the variations. The rule of the route has these as its backends,
	// and no others.
	// +optional
	// +listType=map
	// +listMapKey=variation
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	Services []VariationService `json:"services,omitempty"`
}

// RouteKind is a kind of Gateway API whose rules divide requests by weights.
// +kubebuilder:validation:Enum=HTTPRoute;GRPCRoute
type RouteKind string

// The kinds of routes.
const (
	// RouteHTTP divides HTTP requests.
	RouteHTTP RouteKind = "HTTPRoute"
	// RouteGRPC divides the calls of gRPC.
	RouteGRPC RouteKind = "GRPCRoute"
)

// ReleaseRoute names a route of Gateway API, in the namespace of the release.
type ReleaseRoute struct {
	// kind is the kind of the route.
	// +optional
	// +default="HTTPRoute"
	Kind RouteKind `json:"kind,omitempty"`
	// name is the name of the route.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// rule is the name of the rule with the backends. A route with several rules needs it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Rule string `json:"rule,omitempty"`
}

// VariationService is the Service with the pods of one variation, in the namespace of the release.
type VariationService struct {
	// variation names the variation.
	// +required
	Variation VariationName `json:"variation,omitempty"`
	// serviceName is the name of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	ServiceName string `json:"serviceName,omitempty"`
	// port is the port of the Service, as the backend of the route names it.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// ReleaseRouterStatus is the state of a router that the next leader needs.
type ReleaseRouterStatus struct {
	// name is the name of the router in the spec.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// sequence is the last one that was written by the router; absent before the first.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence,omitempty"`
	// stable is the variation that has all requests when the router ends.
	// +optional
	Stable VariationName `json:"stable,omitempty"`
	// restores are the times of the last ten minutes at which the router restored its weights.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	Restores []RouterRestore `json:"restores,omitempty"`
	// lastEditor is the field manager of the last writer of other weights.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	LastEditor string `json:"lastEditor,omitempty"`
}

// RouterRestore is one replacement of the weights of another writer.
type RouterRestore struct {
	// restoreTime is when the router restored its weights.
	// +required
	RestoreTime metav1.Time `json:"restoreTime,omitzero"`
}

// UsesMesh tells whether the proxies of the mesh carry out the split.
func (s *ABReleaseSpec) UsesMesh() bool {
	for i := range s.Routers {
		if s.Routers[i].Name == RouterMesh {
			return true
		}
	}
	return len(s.Routers) == 0
}

// NamesRouter tells whether a TrafficRouter carries out a part of the split.
func (s *ABReleaseSpec) NamesRouter(name string) bool {
	return name != RouterMesh && s.Router(name) != nil
}

// Router returns the entry of a router by its name; nil if the release does not name the router.
func (s *ABReleaseSpec) Router(name string) *ReleaseRouter {
	for i := range s.Routers {
		if s.Routers[i].Name == name {
			return &s.Routers[i]
		}
	}
	return nil
}

// HasConnectors tells whether at least one TrafficRouter carries out the split.
func (s *ABReleaseSpec) HasConnectors() bool {
	return len(s.Routers) > 1 || len(s.Routers) == 1 && !s.UsesMesh()
}

// SharesRoute tells whether two releases of one namespace name the same route.
func (s *ABReleaseSpec) SharesRoute(other *ABReleaseSpec) bool {
	for i := range s.Routers {
		mine := s.Routers[i].GatewayAPI
		for j := range other.Routers {
			if theirs := other.Routers[j].GatewayAPI; mine != nil && theirs != nil && mine.Name == theirs.Name && mine.kind() == theirs.kind() {
				return true
			}
		}
	}
	return false
}

// kind returns the kind with its default.
func (r *ReleaseRoute) kind() RouteKind {
	if r.Kind == "" {
		return RouteHTTP
	}
	return r.Kind
}
