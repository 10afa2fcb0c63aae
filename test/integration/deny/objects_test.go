// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// ci is a trusted writer of every guard that guard makes. It lives outside of
// the tenants' namespaces: whoever has edit there can act as any service account.
const ci = "system:serviceaccount:cicd:deployer"

var workloads = []v1alpha1.GuardedResource{
	{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "apps/v1", Kind: "StatefulSet"},
	{APIVersion: "apps/v1", Kind: "DaemonSet"}, {APIVersion: "batch/v1", Kind: "CronJob"},
}

// guard denies in one namespace and trusts ci.
func guard(name, namespace string) *v1alpha1.ClusterSpecGuard {
	g := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.Resources = workloads
	g.Spec.Mode = v1alpha1.GuardModeDeny
	g.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
	g.Spec.TrustedWriters.ServiceAccounts = []v1alpha1.ServiceAccountReference{{Namespace: "cicd", Name: "deployer"}}
	return g
}

func deployment(namespace, name string) *appsv1.Deployment {
	return guarded.Workload(namespace, name, "shop:1", 1)
}

// probe is the assessor's question whether a guard is in force.
func probe(ctx context.Context, g *v1alpha1.ClusterSpecGuard) error {
	asker, err := apiserver.As(config, assessorUser)
	if err != nil {
		return err
	}
	var now v1alpha1.ClusterSpecGuard
	if err := admin.Get(ctx, client.ObjectKeyFromObject(g), &now); err != nil {
		return err
	}
	*g = now
	now.Status.Conditions = append(now.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionEnforcementProbe, Status: metav1.ConditionUnknown, Reason: "Probe", LastTransitionTime: metav1.Now(),
	})
	return asker.Status().Update(ctx, &now, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}})
}

func isProof(err error, g *v1alpha1.ClusterSpecGuard) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), fmt.Sprintf("proof: ClusterSpecGuard %s generation %d is in force for ", g.Name, g.Generation))
}

// shop is a namespace whose tenants have edit.
type shop struct{ namespace string }

// newShop makes a namespace, lets the group tenants edit it and ci do anything.
func newShop(t testing.TB, labels map[string]string) shop {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-", Labels: labels}}
	mustDo(t, admin.Create(t.Context(), n))
	bind := func(name, role string, subject rbacv1.Subject) {
		mustBind(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: n.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{subject},
		})
	}
	bind("tenants", "edit", rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "tenants"})
	bind("ci", "cluster-admin", rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: ci})
	return shop{n.Name}
}

// mustBind makes a binding and waits until its subject has what it gives.
func mustBind(t testing.TB, b *rbacv1.RoleBinding) {
	t.Helper()
	mustDo(t, admin.Create(t.Context(), b))
	mustDo(t, apiserver.AwaitBound(t.Context(), admin, b.Subjects[0], b.Namespace, b.RoleRef))
}

// guarded puts a guard in force over the shop; edit may change it before.
func (s shop) guarded(t testing.TB, edits ...func(*v1alpha1.ClusterSpecGuard)) *v1alpha1.ClusterSpecGuard {
	t.Helper()
	g := guard(s.namespace, s.namespace)
	for _, edit := range edits {
		edit(g)
	}
	mustDo(t, admin.Create(t.Context(), g))
	t.Cleanup(func() { mustDo(t, client.IgnoreNotFound(admin.Delete(context.WithoutCancel(t.Context()), g))) })
	mustDo(t, awaitEnforced(t.Context(), g))
	return g
}

// tenant is a user with edit in every shop.
func tenant(t testing.TB) client.Client { return as(t, "tina", "tenants") }

func as(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	c, err := apiserver.As(config, user, groups...)
	mustDo(t, err)
	return c
}

func mustDo(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused tells whether the Deny policy refused, and not RBAC or validation,
// and that its message was composed and did not fall back.
func refused(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "'plumbline-deny'") &&
		strings.Contains(err.Error(), " guards with mode Deny. ") && strings.Contains(err.Error(), "To look it up: kubectl ")
}

func wantRefused(t testing.TB, err error, parts ...string) {
	t.Helper()
	if !refused(err) {
		t.Fatalf("got %v, want a refusal by the Deny policy", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message lacks %q:\n%v", part, err)
		}
	}
}

func wantAllowed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
}

// wantForbiddenByRole tells a refusal by RBAC from one by a policy.
func wantForbiddenByRole(t testing.TB, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), " cannot ") || strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		t.Errorf("got %v, want a refusal by RBAC", err)
	}
}
