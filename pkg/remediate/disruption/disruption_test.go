// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestReplaced(t *testing.T) {
	const template = `"template":{"metadata":{"labels":{"app":"web"}}}`
	for name, test := range map[string]struct {
		kind, spec string
		want       bool
	}{
		"a Deployment of four removes one first":                {"Deployment", `"replicas":4`, true},
		"a Deployment of three surges: a quarter of it is none": {"Deployment", `"replicas":3`, false},
		"a Deployment without replicas has one, which surges":   {"Deployment", `"paused":false`, false},
		"a Deployment that says that one may be unavailable": {
			"Deployment", `"replicas":3,"strategy":{"rollingUpdate":{"maxUnavailable":1}}`, true,
		},
		"a Deployment that only surges": {
			"Deployment", `"replicas":40,"strategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}`, false,
		},
		"a Deployment whose bounds are both none removes one": {
			"Deployment", `"replicas":4,"strategy":{"rollingUpdate":{"maxUnavailable":"1%","maxSurge":"0%"}}`, true,
		},
		"a Deployment that recreates":                    {"Deployment", `"replicas":1,"strategy":{"type":"Recreate"}`, true},
		"a Deployment that is paused rolls nothing out":  {"Deployment", `"replicas":4,"paused":true`, false},
		"a Deployment of none":                           {"Deployment", `"replicas":0`, false},
		"a StatefulSet removes each pod first":           {"StatefulSet", `"replicas":1`, true},
		"a StatefulSet whose pods are deleted by people": {"StatefulSet", `"replicas":3,"updateStrategy":{"type":"OnDelete"}`, false},
		"a StatefulSet that is partitioned":              {"StatefulSet", `"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":2}}`, true},
		"a StatefulSet that is partitioned as a whole":   {"StatefulSet", `"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":3}}`, false},
		"a StatefulSet of none":                          {"StatefulSet", `"replicas":0`, false},
		"a DaemonSet removes each pod first":             {"DaemonSet", `"minReadySeconds":0`, true},
		"a DaemonSet that surges":                        {"DaemonSet", `"updateStrategy":{"rollingUpdate":{"maxSurge":"10%"}}`, false},
		"a DaemonSet that surges by none":                {"DaemonSet", `"updateStrategy":{"rollingUpdate":{"maxSurge":0}}`, true},
		"a DaemonSet whose pods are deleted by people":   {"DaemonSet", `"updateStrategy":{"type":"OnDelete"}`, false},
		"a ReplicaSet replaces no pods by itself":        {"ReplicaSet", `"replicas":3`, false},
	} {
		t.Run(name, func(t *testing.T) {
			pods, got, err := Replaced(schema.GroupKind{Group: "apps", Kind: test.kind}, []byte(`{"spec":{`+test.spec+`,`+template+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			var want labels.Set
			if test.want {
				want = labels.Set{"app": "web"}
			}
			if diff := cmp.Diff(want, pods); diff != "" || got != test.want {
				t.Errorf("got %t, want %t; labels (-want +got):\n%s", got, test.want, diff)
			}
		})
	}
}

func TestReplacedOfAnotherGroupIsNotAsked(t *testing.T) {
	if _, got, err := Replaced(schema.GroupKind{Group: "example.com", Kind: "Deployment"}, []byte(`{`)); got || err != nil {
		t.Errorf("got %t, %v", got, err)
	}
}

func TestReplacedRefusesWhatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct{ kind, object string }{
		"a Deployment that is no JSON":      {"Deployment", `{`},
		"a StatefulSet with odd replicas":   {"StatefulSet", `{"spec":{"replicas":"three"}}`},
		"a DaemonSet that is a list":        {"DaemonSet", `[]`},
		"a percentage that is none":         {"Deployment", `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":"some"}}}}`},
		"a surge percentage that is none":   {"Deployment", `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"some"}}}}`},
		"a Deployment whose spec is a word": {"Deployment", `{"spec":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got, err := Replaced(schema.GroupKind{Group: "apps", Kind: test.kind}, []byte(test.object)); err == nil || got {
				t.Errorf("got %t, %v; want an error", got, err)
			}
		})
	}
}

func TestChangesTemplate(t *testing.T) {
	many := make([]string, 64) // maxItems of spec.targets[].paths
	for name, test := range map[string]struct {
		target v1alpha1.PlanTarget
		want   bool
	}{
		"an image":                     {v1alpha1.PlanTarget{UID: "u", Paths: []string{"/spec/template/spec/containers/[name=app]/image"}}, true},
		"replicas alone":               {v1alpha1.PlanTarget{UID: "u", Paths: []string{"/spec/replicas"}}, false},
		"replicas, and a label":        {v1alpha1.PlanTarget{UID: "u", Paths: []string{"/spec/replicas", "/spec/template/metadata/labels/app"}}, true},
		"the whole spec":               {v1alpha1.PlanTarget{UID: "u", Paths: []string{"/spec"}}, true},
		"a restart":                    {v1alpha1.PlanTarget{UID: "u", Action: v1alpha1.ActionRestart}, true},
		"one path less than are named": {v1alpha1.PlanTarget{UID: "u", Paths: many[1:]}, false},
		"more paths than are named":    {v1alpha1.PlanTarget{UID: "u", Paths: many}, true},
		"an object that is gone":       {v1alpha1.PlanTarget{Action: v1alpha1.ActionReconcile}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ChangesTemplate(&test.target); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// budget returns a budget of the pods of web.
func budget(change func(*policyv1.PodDisruptionBudget)) policyv1.PodDisruptionBudget {
	b := policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3, DisruptionsAllowed: 0},
	}
	change(&b)
	return b
}

func TestABudgetThatAllowsNoDisruptionProtectsItsPods(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*policyv1.PodDisruptionBudget)
		want   string
	}{
		"none is allowed":                 {func(*policyv1.PodDisruptionBudget) {}, "web"},
		"one is allowed":                  {func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 1 }, ""},
		"its controller has not looked":   {func(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration, b.Status.DisruptionsAllowed = 1, 5 }, "web"},
		"it has no pods":                  {func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods = 0 }, ""},
		"it is being deleted":             {func(b *policyv1.PodDisruptionBudget) { b.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)} }, ""},
		"it is for other pods":            {func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels["app"] = "api" }, ""},
		"it selects none":                 {func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil }, ""},
		"it selects all of the namespace": {func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} }, "web"},
		"its selector cannot be read": {func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
		}, "web"},
	} {
		t.Run(name, func(t *testing.T) {
			budgets := Exhausted([]policyv1.PodDisruptionBudget{budget(test.change)})
			if got := Protecting(budgets, labels.Set{"app": "web"}, time.Time{}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A tenant who may write budgets held back the repair of a drift with a budget that the tenant
// made, or changed, after the drift.
func TestABudgetThatCameAfterTheDriftProtectsNothing(t *testing.T) {
	firstSeen := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	before, after := metav1.NewTime(firstSeen.Add(-time.Hour)), metav1.NewTime(firstSeen.Add(time.Second))
	entry := func(at *metav1.Time, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: "kubectl", Time: at, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const spec, status, labeled = `{"f:spec":{}}`, `{"f:status":{}}`, `{"f:metadata":{}}`
	for name, test := range map[string]struct {
		created    metav1.Time
		generation int64
		managers   []metav1.ManagedFieldsEntry
		firstSeen  time.Time
		counts     bool
	}{
		"it was there before, as it is":          {before, 1, nil, firstSeen, true},
		"it was made in the second of the drift": {metav1.NewTime(firstSeen), 1, nil, firstSeen, true},
		"it was made after the drift":            {after, 1, nil, firstSeen, false},
		"its spec was changed before the drift":  {before, 2, []metav1.ManagedFieldsEntry{entry(&before, "", spec)}, firstSeen, true},
		"its spec was changed after the drift":   {before, 2, []metav1.ManagedFieldsEntry{entry(&before, "", spec), entry(&after, "", spec)}, firstSeen, false},
		"its status was written after the drift": {before, 2, []metav1.ManagedFieldsEntry{entry(&before, "", spec), entry(&after, "status", status)}, firstSeen, true},
		"its labels were written after it":       {before, 2, []metav1.ManagedFieldsEntry{entry(&before, "", spec), entry(&after, "", labeled)}, firstSeen, true},
		"its field managers were removed":        {before, 2, nil, firstSeen, false},
		"its spec was written at no time":        {before, 2, []metav1.ManagedFieldsEntry{entry(nil, "", spec)}, firstSeen, false},
		"its fields cannot be read":              {before, 2, []metav1.ManagedFieldsEntry{entry(&after, "", "{")}, firstSeen, false},
		"its scale was written after the drift":  {before, 2, []metav1.ManagedFieldsEntry{entry(&before, "", spec), entry(&after, "scale", spec)}, firstSeen, true},
		"an entry without fields came after it":  {before, 2, []metav1.ManagedFieldsEntry{entry(&before, "", spec), {Manager: "kubectl", Time: &after}}, firstSeen, true},
		"it is not known when the drift was":     {after, 2, nil, time.Time{}, true},
		"it has no field managers of the spec":   {before, 2, []metav1.ManagedFieldsEntry{entry(&before, "", labeled)}, firstSeen, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget(func(b *policyv1.PodDisruptionBudget) {
				b.CreationTimestamp, b.Generation, b.ManagedFields = test.created, test.generation, test.managers
			})
			got := Protecting([]policyv1.PodDisruptionBudget{b}, labels.Set{"app": "web"}, test.firstSeen)
			if counts := got == "web"; counts != test.counts {
				t.Errorf("it counts: %t, want %t", counts, test.counts)
			}
		})
	}
}
