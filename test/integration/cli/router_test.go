// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

// store creates an object of the cluster, and deletes it after the test.
func store(t *testing.T, object client.Object) {
	t.Helper()
	must(t, kube.Create(t.Context(), object))
	t.Cleanup(func() {
		if err := kube.Delete(context.WithoutCancel(t.Context()), object); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// The API server knows which rights the account of the discovery server has, whether or not the account exists.
func TestRouterCheck_NamesThePermissionsThatTheDiscoveryServerLacks(t *testing.T) {
	const system = "plumbline-system"
	router := &v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: v1alpha1.TrafficRouterSpec{
		Type: v1alpha1.TrafficRouterWebhook, AllowedNamespaces: &metav1.LabelSelector{},
		Webhook: &v1alpha1.WebhookRouter{URL: "https://edge.example.com", SecretRef: v1alpha1.RouterSecretKey{Name: "edge-router", Key: "key"}},
	}}
	store(t, router)
	router.Status.ObservedGeneration = router.Generation
	router.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Configured", Message: "can be named", ObservedGeneration: router.Generation, LastTransitionTime: metav1.Now(),
	}}
	must(t, kube.Status().Update(t.Context(), router))
	check := func() answer {
		return plumbline(t.Context(), kubeconfig, "", "", "router", "check", "edge", "--system-namespace", system)
	}
	got := check()
	for _, right := range []string{"list trafficrouters", "update trafficrouters/status", "get secrets edge-router in namespace " + system} {
		if !strings.Contains(got.Stdout, "✗ permissions  the discovery server may not "+right) {
			t.Errorf("the right to %s is not missed:\n%s", right, got.Stdout)
		}
	}
	if got.Code != 1 {
		t.Errorf("the exit code is %d: %s", got.Code, got.Stderr)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "routers-of-the-test"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"trafficrouters"}, Verbs: []string{"list"}},
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"trafficrouters/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"edge-router"}, Verbs: []string{"get"}},
	}}
	store(t, role)
	store(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: "plumbline-xds"}},
	})
	must(t, harness.Eventually(t.Context(), "the permissions of the discovery server", 20*time.Second, func(context.Context) (bool, string) {
		got := check()
		return got.Code == 0 && strings.Contains(got.Stdout, "✓ permissions"), got.Stdout + got.Stderr
	}))
	if got := plumbline(t.Context(), kubeconfig, "", "", "router", "list", "--no-headers"); got.Code != 0 || !strings.Contains(got.Stdout, "edge") {
		t.Errorf("the list is %+v", got)
	}
	if got := plumbline(t.Context(), alice, "", "", "router", "show", "edge"); got.Code != 1 || !strings.Contains(got.Stderr, "Forbidden") {
		t.Errorf("a user without the right gets %+v", got)
	}
}
