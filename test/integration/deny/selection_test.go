// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestNamespaces: the selector of a guard is evaluated as labels of namespaces
// are everywhere in Kubernetes.
func TestNamespaces(t *testing.T) {
	labels := map[string]string{"tier": "gold", "team": "shop"}
	expression := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	match := func(kv ...string) *metav1.LabelSelector {
		s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for i := 0; i < len(kv); i += 2 {
			s.MatchLabels[kv[i]] = kv[i+1]
		}
		return s
	}
	tests := map[string]struct {
		selector *metav1.LabelSelector
		guarded  bool
	}{
		"by a label":                       {match("tier", "gold"), true},
		"by two labels":                    {match("tier", "gold", "team", "shop"), true},
		"by another value":                 {match("tier", "silver"), false},
		"by two labels of which one fits":  {match("tier", "gold", "team", "other"), false},
		"by a label that is not there":     {match("none", "x"), false},
		"In":                               {expression("tier", metav1.LabelSelectorOpIn, "silver", "gold"), true},
		"In, other values":                 {expression("tier", metav1.LabelSelectorOpIn, "silver"), false},
		"In, no such label":                {expression("none", metav1.LabelSelectorOpIn, "gold"), false},
		"NotIn":                            {expression("tier", metav1.LabelSelectorOpNotIn, "silver"), true},
		"NotIn, its value":                 {expression("tier", metav1.LabelSelectorOpNotIn, "gold"), false},
		"NotIn, no such label":             {expression("none", metav1.LabelSelectorOpNotIn, "gold"), true},
		"Exists":                           {expression("tier", metav1.LabelSelectorOpExists), true},
		"Exists, no such label":            {expression("none", metav1.LabelSelectorOpExists), false},
		"DoesNotExist":                     {expression("none", metav1.LabelSelectorOpDoesNotExist), true},
		"DoesNotExist, but it does":        {expression("tier", metav1.LabelSelectorOpDoesNotExist), false},
		"labels and an expression":         {&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}, MatchExpressions: expression("none", metav1.LabelSelectorOpDoesNotExist).MatchExpressions}, true},
		"labels and one that does not fit": {&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}, MatchExpressions: expression("none", metav1.LabelSelectorOpExists).MatchExpressions}, false},
	}
	s := newShop(t, labels)
	d := s.deployed(t, "web")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := guard(fmt.Sprintf("namespaces-%d", time.Now().UnixNano()), "")
			g.Spec.NamespaceSelector = test.selector
			mustDo(t, admin.Create(t.Context(), g))
			defer func() { mustDo(t, admin.Delete(context.WithoutCancel(t.Context()), g)) }()
			mustDo(t, awaitEnforced(t.Context(), g))
			err := dryRun(t.Context(), tenant(t), d)
			if test.guarded {
				wantRefused(t, err, g.Name)
			} else {
				wantAllowed(t, err)
			}
		})
	}
}

// TestTheClusterItselfIsNeverBlocked, even by a guard that names no namespace
// and every kind that can be registered.
func TestTheClusterItselfIsNeverBlocked(t *testing.T) {
	g := guard("everywhere", "")
	g.Spec.NamespaceSelector = nil
	g.Spec.Resources = append([]v1alpha1.GuardedResource{{APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "v1", Kind: "Pod"}, {APIVersion: "apps/v1", Kind: "ReplicaSet"}}, workloads...)
	s := newShop(t, nil)
	d := s.deployed(t, "web")
	mustDo(t, admin.Create(t.Context(), g))
	defer func() { mustDo(t, admin.Delete(context.WithoutCancel(t.Context()), g)) }()
	mustDo(t, awaitEnforced(t.Context(), g))
	wantRefused(t, setImage(t.Context(), tenant(t), d))

	root := as(t, "root", "roots")
	for _, namespace := range []string{"kube-system", "kube-public", "kube-node-lease", "plumbline-system"} {
		if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})); err != nil {
			t.Fatal(err)
		}
		own := deployment(namespace, "component")
		wantAllowed(t, root.Create(t.Context(), own))
		wantAllowed(t, setImage(t.Context(), root, own))
		wantAllowed(t, root.Delete(t.Context(), own))
	}
	for _, other := range []client.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "service", Namespace: s.namespace}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
	} {
		wantAllowed(t, root.Create(t.Context(), other))
	}
	// A new namespace gets what its pods need, from controllers of Kubernetes.
	fresh := newShop(t, nil)
	eventually(t, "the root certificates of a new namespace", func() error {
		return admin.Get(t.Context(), client.ObjectKey{Namespace: fresh.namespace, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{})
	})
	wantRefused(t, tenant(t).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fresh.namespace, Name: "mine"}}))
	// Nor is the removal of a namespace held up by what is guarded in it.
	mustDo(t, admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}))
	eventually(t, "the namespace to be gone", func() error {
		var n corev1.Namespace
		err := admin.Get(t.Context(), client.ObjectKey{Name: s.namespace}, &n)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("there still: %+v: %w", n.Status.Conditions, err)
	})
}

// TestSuspension: there is no clock in the API server's expressions, so a
// suspension ends when the assessor says so, of exactly the generation that is
// in force. Without an assessor it does not end.
func TestSuspension(t *testing.T) {
	s := newShop(t, nil)
	g := s.guarded(t)
	d := s.deployed(t, "web")
	asAssessor := as(t, assessorUser)
	report := func(status metav1.ConditionStatus, generation int64) {
		t.Helper()
		mustDo(t, admin.Get(t.Context(), client.ObjectKeyFromObject(g), g))
		g.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionSuspended, Status: status, Reason: "Test", ObservedGeneration: generation, LastTransitionTime: metav1.Now(),
		}}
		mustDo(t, asAssessor.Status().Update(t.Context(), g))
	}
	mustDo(t, admin.Get(t.Context(), client.ObjectKeyFromObject(g), g))
	g.Spec.Suspend = &v1alpha1.Suspension{Reason: "migration", EndTime: metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))}
	mustDo(t, admin.Update(t.Context(), g))
	eventually(t, "the suspension to be in force, although its time is over", func() error { return dryRun(t.Context(), tenant(t), d) })

	report(metav1.ConditionTrue, g.Generation)
	report(metav1.ConditionFalse, g.Generation-1)
	mustDo(t, stays(t, func() error { return dryRun(t.Context(), tenant(t), d) }))
	report(metav1.ConditionFalse, g.Generation)
	mustDo(t, awaitEnforced(t.Context(), g))
	wantRefused(t, dryRun(t.Context(), tenant(t), d))

	// Prolonging it is another generation, of which nothing is said yet.
	g.Spec.Suspend.EndTime = metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	mustDo(t, admin.Update(t.Context(), g))
	eventually(t, "the longer suspension to be in force", func() error { return dryRun(t.Context(), tenant(t), d) })
}

// stays asks again until parameters of now have surely been read: until a guard
// that was made now is in force.
func stays(t testing.TB, ask func() error) error {
	t.Helper()
	marker := guard(fmt.Sprintf("marker-%d", time.Now().UnixNano()), "no-such-namespace")
	mustDo(t, admin.Create(t.Context(), marker))
	defer func() { mustDo(t, admin.Delete(context.WithoutCancel(t.Context()), marker)) }()
	mustDo(t, awaitEnforced(t.Context(), marker))
	return ask()
}
