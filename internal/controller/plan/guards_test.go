// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// viewOf reads one cluster guard that says so of its mass drift.
func viewOf(t *testing.T, status v1alpha1.GuardStatus, more ...client.Object) *view {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	g := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: "platform", CreationTimestamp: metav1.NewTime(now)}, Status: status}
	g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}
	reader := fakeclient.NewBuilder(scheme).WithRESTMapper(mapper).WithObjects(
		g, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank"}},
	).WithObjects(more...).Build()
	v, err := (&Guards{Mapper: mapper, Clock: testingclock.NewFakePassiveClock(now)}).Read(t.Context(), reader)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*view)
}

func TestAMassDriftHoldsTheTargetsThatHaveAPartInIt(t *testing.T) {
	shop := v1alpha1.GuardStatus{MassDrift: &v1alpha1.MassDrift{Namespaces: []v1alpha1.FrozenNamespace{{Name: "shop"}}}}
	replicas := v1alpha1.GuardStatus{MassDrift: &v1alpha1.MassDrift{Causes: []v1alpha1.FrozenCause{{Path: "/spec/replicas", User: "bot"}}}}
	removed := v1alpha1.GuardStatus{MassDrift: &v1alpha1.MassDrift{Causes: []v1alpha1.FrozenCause{{User: "bot"}}}}
	whole := v1alpha1.GuardStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMassDrift}}}
	var crowd []string
	for i := range planner.MaxActors {
		crowd = append(crowd, fmt.Sprint("user-", i))
	}
	by := func(path string, users ...string) v1alpha1.PlanTarget {
		return v1alpha1.PlanTarget{Paths: []string{path}, Actors: users}
	}
	tests := map[string]struct {
		status    v1alpha1.GuardStatus
		namespace string
		target    v1alpha1.PlanTarget
		want      bool
	}{
		"nothing is frozen":                      {v1alpha1.GuardStatus{}, "shop", by("/spec/replicas", "bot"), false},
		"its namespace":                          {shop, "shop", by("/spec/paused", "alice"), true},
		"another namespace":                      {shop, "bank", by("/spec/paused", "alice"), false},
		"its cause":                              {replicas, "bank", by("/spec/replicas", "alice", "bot"), true},
		"its path by another user":               {replicas, "bank", by("/spec/replicas", "alice"), false},
		"its path by users of whom some are cut": {replicas, "bank", by("/spec/replicas", crowd...), true},
		"another path":                           {replicas, "bank", by("/spec/paused", "bot"), false},
		"an object that is gone":                 {removed, "bank", v1alpha1.PlanTarget{}, true},
		"the whole guard of an earlier version":  {whole, "bank", by("/spec/paused", "alice"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			target := tc.target
			target.APIVersion, target.Kind, target.Name = "apps/v1", "Deployment", "web"
			got := viewOf(t, tc.status).Frozen(tc.namespace, &target)
			if want := map[bool]string{true: "ClusterSpecGuard/platform"}[tc.want]; got != want {
				t.Errorf("frozen by %q, want %q", got, want)
			}
		})
	}
}

func TestAReadinessRuleIsEvaluatedForTheExecutor(t *testing.T) {
	defaults := &v1alpha1.GuardDefaults{ObjectMeta: metav1.ObjectMeta{Name: "platform"}, Spec: v1alpha1.GuardDefaultsSpec{Readiness: []v1alpha1.ReadinessRule{
		{APIGroup: "shop.example", Kind: "Basket", Expression: "object.status.phase == 'Bound'"},
		{APIGroup: "shop.example", Kind: "Shelf", Expression: "self.phase"},
	}}}
	v := viewOf(t, v1alpha1.GuardStatus{}, defaults)
	target := func(kind string) *v1alpha1.PlanTarget {
		return &v1alpha1.PlanTarget{BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "shop.example/v1", Kind: kind}}
	}
	tests := map[string]struct {
		kind, object string
		want         bool
		fails        string
	}{
		"it holds":               {"Basket", `{"status":{"phase":"Bound"}}`, true, ""},
		"it does not hold":       {"Basket", `{"status":{"phase":"Pending"}}`, false, ""},
		"it cannot be evaluated": {"Basket", `{}`, false, "no such key: status"},
		"it cannot be compiled":  {"Shelf", `{}`, false, "1:1: undeclared reference to 'self' (in container '')"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rule := v.Readiness("shop", target(test.kind))
			if rule == nil || rule.Source != "GuardDefaults/platform" {
				t.Fatalf("the rule is %+v", rule)
			}
			got, err := rule.Holds([]byte(test.object))
			if got != test.want || (err == nil) != (test.fails == "") || err != nil && err.Error() != test.fails {
				t.Errorf("holds: %t, %v", got, err)
			}
		})
	}
	if rule := v.Readiness("shop", target("Door")); rule != nil {
		t.Errorf("a kind without a rule has %+v", rule)
	}
}
