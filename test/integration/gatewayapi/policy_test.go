// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gatewayapi

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// grantAll gives the discovery server every right on routes, so that the policy alone is tested.
func grantAll(t *testing.T) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "all-routes"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "all-routes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "all-routes"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "plumbline-xds", Namespace: "plumbline-system"}},
	}
	must(t, admin.Create(t.Context(), role))
	must(t, admin.Create(t.Context(), binding))
	cleanUp(t, binding, role)
	must(t, apiserver.AwaitBound(t.Context(), admin, binding.Subjects[0], tenant, binding.RoleRef))
}

// full makes a route with each field of its kind.
func full(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()
	schema := kinds[kind].Properties["spec"]
	object := &unstructured.Unstructured{Object: map[string]any{"spec": (&sampler{}).value(&schema)}}
	object.SetAPIVersion("gateway.networking.k8s.io/" + free)
	object.SetKind(kind)
	object.SetNamespace(tenant)
	object.SetName("full")
	object.SetLabels(map[string]string{"app": "web"})
	object.SetAnnotations(map[string]string{"example.com/note": "a"})
	object.SetFinalizers([]string{"example.com/kept"}) // so the object stays until the API server ends
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "1"}})
	must(t, admin.Create(t.Context(), object))
	cleanUp(t, object)
	return object
}

// mutationsOf are all changes of the spec and of the metadata that a writer can make.
func mutationsOf(kind string) []mutation {
	schema := kinds[kind].Properties["spec"]
	all := mutations(&schema, "spec", 0, func(root map[string]any) any { return root["spec"] }, func(root map[string]any, value any) { root["spec"] = value })
	for _, field := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		all = append(all, mutation{"metadata." + field + " removed", func(root map[string]any) { delete(root["metadata"].(map[string]any), field) }})
	}
	for _, field := range []string{"labels", "annotations"} {
		all = append(all, mutation{"metadata." + field + " more", func(root map[string]any) {
			root["metadata"].(map[string]any)[field].(map[string]any)["example.com/other"] = "b"
		}})
	}
	return all
}

func isWeight(path string) bool {
	return strings.HasPrefix(path, "spec.rules[].backendRefs[].weight") && !strings.HasSuffix(path, "removed")
}

func TestTheDiscoveryServerChangesWeightsAndNothingElse(t *testing.T) {
	rotation.Share(t, 3)
	grantAll(t)
	for kind := range kinds {
		object, weights, others := full(t, kind), 0, 0
		for _, m := range mutationsOf(kind) {
			change := &unstructured.Unstructured{Object: mutated(object.Object, m)}
			if strings.HasPrefix(m.path, "metadata") || strings.Count(m.path, ".") < 4 { // the policy is about one user
				if err := admin.Update(t.Context(), change.DeepCopy(), client.DryRunAll); err != nil {
					t.Errorf("%s %s by an administrator: %v", kind, m.path, err)
				}
			}
			err := xds.Update(t.Context(), change, client.DryRunAll)
			if isWeight(m.path) {
				weights++
				if err != nil {
					t.Errorf("%s %s: %v", kind, m.path, err)
				}
				continue
			}
			others++
			if !refusedByPolicy(err) {
				t.Errorf("%s %s: got %v, want a refusal by the policy", kind, m.path, err)
			}
		}
		t.Logf("%s: %d changes of weights, %d of other fields", kind, weights, others)
		if weights != 1 || others < 200 {
			t.Errorf("%s: %d changes of weights and %d of other fields were tried", kind, weights, others)
		}
	}
}

func refusedByPolicy(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "the discovery server may only change weights")
}

// The API allows sixteen rules, and sixteen backends of each.
func TestThePolicyComparesTheLastRuleAndTheLastBackend(t *testing.T) {
	grantAll(t)
	object := plainRoute("large", "canary")
	rules := make([]any, 16)
	for i := range rules {
		backends := make([]any, 16)
		for j := range backends {
			backends[j] = map[string]any{"name": fmt.Sprintf("service-%d", j), "port": int64(80), "weight": int64(1)}
		}
		rules[i] = map[string]any{"name": fmt.Sprintf("rule-%d", i), "backendRefs": backends}
	}
	must(t, unstructured.SetNestedSlice(object.Object, rules, "spec", "rules"))
	must(t, admin.Create(t.Context(), object))
	cleanUp(t, object)
	for field, allowed := range map[string]bool{"weight": true, "port": false} {
		change := object.DeepCopy()
		rules, _, err := unstructured.NestedSlice(change.Object, "spec", "rules")
		must(t, err)
		rules[15].(map[string]any)["backendRefs"].([]any)[15].(map[string]any)[field] = int64(7)
		must(t, unstructured.SetNestedSlice(change.Object, rules, "spec", "rules"))
		if err := xds.Update(t.Context(), change, client.DryRunAll); allowed != (err == nil) || !allowed && !refusedByPolicy(err) {
			t.Errorf("%s of the last backend: %v", field, err)
		}
	}
}

func TestTheDiscoveryServerMakesNoRouteAndReportsOnNone(t *testing.T) {
	grantAll(t)
	object := plainRoute("kept", "canary")
	if err := xds.Create(t.Context(), object.DeepCopy()); !refusedByPolicy(err) {
		t.Errorf("creating a route: %v", err)
	}
	must(t, admin.Create(t.Context(), object))
	cleanUp(t, object)
	if err := xds.Delete(t.Context(), object.DeepCopy()); !refusedByPolicy(err) {
		t.Errorf("deleting a route: %v", err)
	}
	reported := object.DeepCopy()
	must(t, unstructured.SetNestedSlice(reported.Object, []any{}, "status", "parents"))
	if err := xds.Status().Update(t.Context(), reported); !refusedByPolicy(err) {
		t.Errorf("reporting on a route: %v", err)
	}
}

// Without the rights of grantAll: in a namespace that the chart does not name there is none.
func TestTheRightsEndAtTheNamespaces(t *testing.T) {
	object := plainRoute("elsewhere", "canary")
	object.SetNamespace(metav1.NamespaceDefault)
	must(t, admin.Create(t.Context(), object))
	cleanUp(t, object)
	patch := client.RawPatch("application/json-patch+json", []byte(`[{"op":"replace","path":"/spec/rules/0/backendRefs/0/weight","value":7}]`))
	if err := xds.Patch(t.Context(), object, patch); !apierrors.IsForbidden(err) {
		t.Errorf("changing a weight in another namespace: %v", err)
	}
}
