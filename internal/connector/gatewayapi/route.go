// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// group is the API group of routes and Gateways.
const group = "gateway.networking.k8s.io"

// The kinds of routes that have weights.
var (
	HTTPRoute = schema.GroupVersionKind{Group: group, Version: "v1", Kind: "HTTPRoute"}
	GRPCRoute = schema.GroupVersionKind{Group: group, Version: "v1", Kind: "GRPCRoute"}
)

// Route has the fields of an HTTPRoute and a GRPCRoute that the package reads. The API server keeps all others, because
// a patch of weights leaves them alone.
type Route struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status"`
}

// Spec of a route.
type Spec struct {
	ParentRefs []ParentRef `json:"parentRefs"`
	Rules      []Rule      `json:"rules"`
}

// Rule sends the requests that it matches to backends by weight.
type Rule struct {
	Name               string          `json:"name"`
	BackendRefs        []BackendRef    `json:"backendRefs"`
	SessionPersistence json.RawMessage `json:"sessionPersistence"`
}

// BackendRef is one backend of a rule.
type BackendRef struct {
	Group     string          `json:"group"`
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Port      int32           `json:"port"`
	Weight    *int32          `json:"weight"`
	Filters   json.RawMessage `json:"filters"`
}

// ParentRef names a Gateway, or what else carries a route out.
type ParentRef struct {
	Group       string `json:"group"`
	Kind        string `json:"kind"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	SectionName string `json:"sectionName"`
	Port        int32  `json:"port"`
}

// Status of a route, by the controller of each parent.
type Status struct {
	Parents []ParentStatus `json:"parents"`
}

// ParentStatus is the view of one controller of one parent.
type ParentStatus struct {
	ParentRef      ParentRef          `json:"parentRef"`
	ControllerName string             `json:"controllerName"`
	Conditions     []metav1.Condition `json:"conditions"`
}

// Decode reads a route.
func Decode(object *unstructured.Unstructured) (*Route, error) {
	raw, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the route: %w", err)
	}
	var route Route
	if err := json.Unmarshal(raw, &route); err != nil {
		return nil, fmt.Errorf("decoding the route: %w", err)
	}
	return &route, nil
}

// weight returns the weight that the API has by default where none is written.
func (b *BackendRef) weight() int32 {
	if b.Weight == nil {
		return 1
	}
	return *b.Weight
}

// in returns the reference with the defaults of the API, for a route of a namespace.
func (p ParentRef) in(namespace string) ParentRef {
	p.Group, p.Kind, p.Namespace = cmp.Or(p.Group, group), cmp.Or(p.Kind, "Gateway"), cmp.Or(p.Namespace, namespace)
	return p
}

// String returns the name of the parent for people.
func (p ParentRef) String() string {
	text := fmt.Sprintf("%s %s/%s", p.Kind, p.Namespace, p.Name)
	if p.SectionName != "" {
		text += " section " + p.SectionName
	}
	if p.Port != 0 {
		text += fmt.Sprintf(" port %d", p.Port)
	}
	return text
}
