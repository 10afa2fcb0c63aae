// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const creationsPolicy = "plumbline-executor-creations"

// creatable are the resources that a role lets its subjects make, as group/resource.
func creatable(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		if !slices.Contains(rule.Verbs, "create") {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				all = append(all, group+"/"+resource)
			}
		}
	}
	return all
}

// holds says whether the policy looks at a creation of a resource.
func holds(m *admissionv1.MatchResources, resource string) bool {
	group, name, _ := strings.Cut(resource, "/")
	return slices.ContainsFunc(m.ResourceRules, func(rule admissionv1.NamedRuleWithOperations) bool {
		return slices.Contains(rule.Operations, admissionv1.Create) && slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, name)
	})
}

// D4 of the review of remediation. What the executor makes for its own work carries no
// time, and every guarded object that it may make does.
func TestThePolicyOfCreationsHoldsForTargetsAndNotForTheExecutorsOwnWork(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"apart": executing(t), "in one process": inOneProcess(t),
		"with more kinds": executing(t, "--set-json", `guard.resources=[{"group":"","version":"v1","resource":"services"},{"group":"example.com","version":"v1","resource":"widgets"}]`),
	} {
		t.Run(name, func(t *testing.T) {
			policy := convert[admissionv1.ValidatingAdmissionPolicy](t, find(t, objects, "ValidatingAdmissionPolicy", creationsPolicy))
			targets := creatable(convert[rbacv1.ClusterRole](t, find(t, objects, "ClusterRole", "plumbline-executor-targets")).Rules)
			own := creatable(convert[rbacv1.ClusterRole](t, find(t, objects, "ClusterRole", "plumbline-executor")).Rules)
			for _, object := range rendered.OfKind(objects, "Role") {
				if object.GetName() == "plumbline-executor" {
					own = append(own, creatable(convert[rbacv1.Role](t, object).Rules)...)
				}
			}
			if name == "in one process" {
				own = append(own, creatable(convert[rbacv1.ClusterRole](t, find(t, objects, "ClusterRole", "plumbline-assessor")).Rules)...)
			}
			if len(targets) == 0 || len(own) == 0 {
				t.Fatalf("the executor may make the targets %q, and %q", targets, own)
			}
			for _, resource := range targets {
				if !holds(policy.Spec.MatchConstraints, resource) {
					t.Errorf("a creation of %s needs no time", resource)
				}
			}
			for _, resource := range own {
				if holds(policy.Spec.MatchConstraints, resource) {
					t.Errorf("a creation of %s needs a time", resource)
				}
			}
		})
	}
}

// The two write the key down once more, because templates cannot call Go.
func TestThePolicyOfCreationsReadsWhatTheExecutorWrites(t *testing.T) {
	policy := find(t, executing(t), "ValidatingAdmissionPolicy", creationsPolicy)
	if !strings.Contains(fmt.Sprint(expressionsOf(policy)), fmt.Sprintf("%q", repair.AnnotationNotAfter)) {
		t.Errorf("no expression reads %s", repair.AnnotationNotAfter)
	}
	if got := convert[admissionv1.ValidatingAdmissionPolicy](t, policy).Spec.FailurePolicy; *got != admissionv1.Fail {
		t.Errorf("an expression that fails lets the creation through: %s", *got)
	}
}
