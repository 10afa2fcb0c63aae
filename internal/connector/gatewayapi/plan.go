// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Operation is one of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Plan returns the patch that gives the backends of a rule their weights; nil if they have them. The patch tests the
// version of the route, the name of the rule and of each backend, and replaces weights alone. A route that cannot have
// the weights is a [RefusalError].
func Plan(route *Route, rule string, weights Weights) ([]Operation, error) {
	at, err := findRule(route, rule)
	if err != nil {
		return nil, err
	}
	if err := checkRule(route, at, weights); err != nil {
		return nil, err
	}
	backends := route.Spec.Rules[at].BackendRefs
	if hasWeights(backends, weights) {
		return nil, nil
	}
	base := fmt.Sprintf("/spec/rules/%d", at)
	patch := []Operation{{"test", "/metadata/resourceVersion", route.ResourceVersion}}
	if name := route.Spec.Rules[at].Name; name != "" {
		patch = append(patch, Operation{"test", base + "/name", name})
	}
	for i, backend := range backends {
		patch = append(patch, Operation{"test", fmt.Sprintf("%s/backendRefs/%d/name", base, i), backend.Name})
	}
	for i, backend := range backends {
		patch = append(patch, Operation{"replace", fmt.Sprintf("%s/backendRefs/%d/weight", base, i), weights[backend.target()]})
	}
	return patch, nil
}

func (b *BackendRef) target() Target { return Target{b.Name, b.Port} }

func hasWeights(backends []BackendRef, weights Weights) bool {
	return !slices.ContainsFunc(backends, func(b BackendRef) bool { return b.weight() != weights[b.target()] })
}

// findRule returns the index of the rule with a name. The only rule needs no name.
func findRule(route *Route, name string) (int, error) {
	rules := route.Spec.Rules
	if name == "" && len(rules) == 1 {
		return 0, nil
	}
	if name == "" {
		return 0, refuse(ReasonRuleNotNamed, "%s has %d rules; name the rule in the release", route, len(rules))
	}
	at := slices.IndexFunc(rules, func(r Rule) bool { return r.Name == name })
	if at < 0 {
		return 0, refuse(ReasonRuleNotFound, "%s has no rule %q", route, name)
	}
	return at, nil
}

// checkRule returns the first reason why a rule cannot carry weights out.
func checkRule(route *Route, at int, weights Weights) error {
	rule := &route.Spec.Rules[at]
	if isSet(rule.SessionPersistence) {
		return refuse(ReasonSessionPersistence, "%s keeps sessions on a backend in rule %q; remove sessionPersistence", route, rule.Name)
	}
	seen := map[Target]bool{}
	for i := range rule.BackendRefs {
		backend := &rule.BackendRefs[i]
		_, wanted := weights[backend.target()]
		switch {
		case !backend.isService(route.Namespace):
			return refuse(ReasonBackendUnsupported, "backend %d of %s is %s %q; a variation is a Service in namespace %s", i, route, backend.Kind, backend.Name, route.Namespace)
		case !wanted && backend.weight() > 0:
			return refuse(ReasonOtherBackendHasWeight, "Service %s, port %d, in %s is no variation and has weight %d; remove the backend from the rule", backend.Name, backend.Port, route, backend.weight())
		case !wanted || seen[backend.target()]:
			return refuse(ReasonBackendsDiffer, "the rule of %s has Service %s, port %d, once too often; its backends have to be the Services of the variations", route, backend.Name, backend.Port)
		case !equalJSON(backend.Filters, rule.BackendRefs[0].Filters):
			return refuse(ReasonFiltersDiffer, "in %s Service %s has other filters than Service %s; give all variations the same filters", route, backend.Name, rule.BackendRefs[0].Name)
		}
		seen[backend.target()] = true
	}
	if missing := missingOf(weights, seen); len(missing) > 0 {
		return refuse(ReasonBackendsDiffer, "the rule of %s lacks Service %s; its backends have to be the Services of the variations", route, strings.Join(missing, ", "))
	}
	return nil
}

func missingOf(weights Weights, seen map[Target]bool) (missing []string) {
	for target := range weights {
		if !seen[target] {
			missing = append(missing, fmt.Sprintf("%s:%d", target.Service, target.Port))
		}
	}
	slices.Sort(missing)
	return missing
}

func (b *BackendRef) isService(namespace string) bool {
	return b.Group == "" && (b.Kind == "" || b.Kind == "Service") && (b.Namespace == "" || b.Namespace == namespace)
}

// String returns the kind and name of the route for people.
func (r *Route) String() string { return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name) }

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// equalJSON compares two values that one encoder wrote, so equal values have equal bytes. No value equals an empty list.
func equalJSON(a, b json.RawMessage) bool {
	empty := func(raw json.RawMessage) bool { return !isSet(raw) || bytes.Equal(raw, []byte("[]")) }
	return empty(a) && empty(b) || bytes.Equal(a, b)
}
