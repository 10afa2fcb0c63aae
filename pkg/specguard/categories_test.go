// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func TestAGuardNamesTheKindsOfItsCategoriesOnce(t *testing.T) {
	tests := map[string]struct {
		spec v1alpha1.GuardSpec
		want []string
	}{
		"single kinds": {
			v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "v1", Kind: "Service"}, {APIVersion: "example.com/v1", Kind: "Widget"}}},
			[]string{"spec.resources[0] v1 Service", "spec.resources[1] example.com/v1 Widget"},
		},
		"a category": {
			v1alpha1.GuardSpec{Categories: []v1alpha1.ResourceCategory{v1alpha1.CategoryRBAC}},
			[]string{"spec.categories[0] rbac.authorization.k8s.io/v1 Role", "spec.categories[0] rbac.authorization.k8s.io/v1 RoleBinding", "spec.categories[0] v1 ServiceAccount"},
		},
		"a single kind in the version of its own, and the rest of its category": {
			v1alpha1.GuardSpec{
				Resources:  []v1alpha1.GuardedResource{{APIVersion: "autoscaling/v1", Kind: "HorizontalPodAutoscaler"}},
				Categories: []v1alpha1.ResourceCategory{v1alpha1.CategoryStorage, v1alpha1.CategoryAvailability},
			},
			[]string{"spec.resources[0] autoscaling/v1 HorizontalPodAutoscaler", "spec.categories[0] v1 PersistentVolumeClaim", "spec.categories[1] policy/v1 PodDisruptionBudget"},
		},
		"a kind of the same name in another group": {
			v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "example.com/v1", Kind: "PersistentVolumeClaim"}}, Categories: []v1alpha1.ResourceCategory{v1alpha1.CategoryStorage}},
			[]string{"spec.resources[0] example.com/v1 PersistentVolumeClaim", "spec.categories[0] v1 PersistentVolumeClaim"},
		},
		"a category that does not exist": {v1alpha1.GuardSpec{Categories: []v1alpha1.ResourceCategory{"Everything"}}, nil},
		"no kind":                        {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range ListResources(&test.spec) {
				got = append(got, r.Path.String()+" "+r.APIVersion+" "+r.Kind)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAKindIsInOneCategory(t *testing.T) {
	seen := map[string]v1alpha1.ResourceCategory{}
	for _, c := range Categories() {
		for _, k := range c.Kinds {
			name := k.Group + "/" + k.Kind
			if other, twice := seen[name]; twice {
				t.Errorf("%s is in the categories %s and %s", name, other, c.Name)
			}
			seen[name] = c.Name
			if got, ok := FindCategory(k.GVK); !ok || got != c.Name {
				t.Errorf("the category of %s is %s, want %s", name, got, c.Name)
			}
		}
	}
	if name, ok := FindCategory(canon.GVK{Version: "v1", Kind: "Secret"}); ok {
		t.Errorf("Secrets are in category %s", name)
	}
}

func TestAGuardOfACategorySelectsItsObjects(t *testing.T) {
	spec := v1alpha1.GuardSpec{Categories: []v1alpha1.ResourceCategory{v1alpha1.CategoryNetworking}}
	guard, errs := Compile(GuardRef{Namespace: "shop", Name: "net"}, spec, nil, testNow)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	set := NewGuardSet([]*Guard{guard}, nil, System{})
	for kind, want := range map[canon.GVK]bool{
		{Version: "v1", Kind: "Service"}:                                  true,
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}:      true,
		{Group: "networking.k8s.io", Version: "v2", Kind: "Ingress"}:      true, // another version of the same kind
		{Version: "v1", Kind: "ConfigMap"}:                                false,
		{Group: "example.com", Version: "v1", Kind: "NetworkPolicy"}:      false,
		{Group: "networking.k8s.io", Version: "v1", Kind: "IngressClass"}: false,
	} {
		if got := !set.Rules(Query{Namespace: "shop", GVK: kind, Now: testNow}).Empty(); got != want {
			t.Errorf("%v is guarded: %v, want %v", kind, got, want)
		}
	}
	inert := CompileInert(GuardRef{Namespace: "shop", Name: "net"}, spec, nil, testNow)
	if diff := cmp.Diff(guard.Resources(), inert.Resources()); diff != "" {
		t.Errorf("the guard vetoes for other kinds than it guards (-guarded +vetoed):\n%s", diff)
	}
}
