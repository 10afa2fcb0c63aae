// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// request is what a rule is asked about: an operation on a resource, which may
// hold a subresource (deployments/scale). It is namespaced unless it says so.
type request struct {
	group, resource string
	operation       admissionv1.OperationType
	clusterScoped   bool
}

// matches tells whether the API server would apply a rule, of whatever version:
// with matchPolicy Equivalent the version decides nothing.
func (r request) matches(rule admissionv1.RuleWithOperations) bool {
	if !slices.Contains(rule.Operations, admissionv1.OperationAll) && !slices.Contains(rule.Operations, r.operation) {
		return false
	}
	if scope := rule.Scope; scope != nil && *scope != admissionv1.AllScopes && (*scope == admissionv1.ClusterScope) != r.clusterScoped {
		return false
	}
	if !slices.Contains(rule.APIGroups, "*") && !slices.Contains(rule.APIGroups, r.group) {
		return false
	}
	return slices.ContainsFunc(rule.Resources, r.matchesResource)
}

// matchesResource follows the API: "*" is every resource without subresources,
// "*/*" everything, "pods/*" the subresources of pods, "*/scale" every /scale.
func (r request) matchesResource(pattern string) bool {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	wantResource, wantSubresource, _ := strings.Cut(pattern, "/")
	return (wantResource == "*" || wantResource == resource) && (wantSubresource == subresource || wantSubresource == "*")
}

func (r request) matchesAny(rules []admissionv1.RuleWithOperations) bool {
	return slices.ContainsFunc(rules, r.matches)
}

// policyRules gives a policy's rules the form of a webhook's. Rules that name
// objects are left out: they match less than their resource.
func policyRules(rules []admissionv1.NamedRuleWithOperations) []admissionv1.RuleWithOperations {
	var out []admissionv1.RuleWithOperations
	for _, rule := range rules {
		if len(rule.ResourceNames) == 0 {
			out = append(out, rule.RuleWithOperations)
		}
	}
	return out
}

// selects tells whether a selector takes labels; none takes everything, and one
// that does not parse is taken to as well: the safe side when looking for harm.
func selects(selector *metav1.LabelSelector, of map[string]string) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || parsed.Matches(labels.Set(of))
}

func isEmptySelector(selector *metav1.LabelSelector) bool {
	return selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0
}

// target is a resource that Plumbline registers.
type target struct{ group, resource string }

func (t target) String() string {
	if t.group == "" {
		return t.resource
	}
	resource, subresource, found := strings.Cut(t.resource, "/")
	if found {
		return resource + "." + t.group + "/" + subresource
	}
	return resource + "." + t.group
}

func (t target) sub(subresource string) target {
	return target{t.group, t.resource + "/" + subresource}
}

func (t target) request(operation admissionv1.OperationType) request {
	return request{group: t.group, resource: t.resource, operation: operation}
}

func compareTargets(a, b target) int { return strings.Compare(a.String(), b.String()) }

// objectTargets are the resources that rules name outright, without subresources.
func objectTargets(rules []admissionv1.RuleWithOperations) []target {
	var out []target
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if !strings.ContainsAny(resource, "*/") && group != "*" {
					out = append(out, target{group, resource})
				}
			}
		}
	}
	slices.SortFunc(out, compareTargets)
	return slices.Compact(out)
}
