// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// withoutPods are the kinds of the chart's objects that work without a pod. The
// webhook configurations stay out: without a webhook each write would wait.
var withoutPods = []string{
	"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount", "Lease",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}

// Render renders the chart into its objects, with further arguments of `helm
// template`.
func Render(ctx context.Context, helm *rendered.Client, args ...string) ([]*unstructured.Unstructured, error) {
	out, err := helm.Template(ctx, args...)
	if err != nil {
		return nil, err
	}
	return rendered.Objects(out)
}

// Install makes Plumbline's namespace and those of the chart's objects in it that
// work without a pod: kinds, roles, service accounts, Leases and policies, and
// the further kinds that are named.
func Install(ctx context.Context, admin client.Client, objects []*unstructured.Unstructured, further ...string) error {
	if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rendered.Namespace}}); err != nil {
		return fmt.Errorf("creating Plumbline's namespace: %w", err)
	}
	wanted := slices.Concat(withoutPods, further)
	for _, object := range objects {
		if rendered.IsHook(object) || !slices.Contains(wanted, object.GetKind()) {
			continue
		}
		if err := admin.Create(ctx, object.DeepCopy()); err != nil {
			return fmt.Errorf("creating %s: %w", rendered.ID(object), err)
		}
	}
	return nil
}

// Bind gives the role of a ClusterRole everywhere to a group, and waits until the
// group has it; name is that of the binding.
func Bind(ctx context.Context, admin client.Client, name, role, group string) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}},
	}
	if err := admin.Create(ctx, binding); err != nil {
		return fmt.Errorf("binding %s to the group %s: %w", role, group, err)
	}
	return AwaitBound(ctx, admin, binding.Subjects[0], "", binding.RoleRef)
}

// Stamped says whether the writer policy is in force.
func Stamped(ctx context.Context, admin client.Client) (bool, error) {
	labels := map[string]string{"app": "probe"}
	probe := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "probe", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "probe"}}},
			},
		},
	}
	err := admin.Create(ctx, probe, client.DryRunAll)
	return probe.Annotations[v1alpha1.AnnotationWriter] != "", err
}

// AwaitStamp waits until the writer policy is in force, which takes about a
// second; limit bounds the wait.
func AwaitStamp(ctx context.Context, admin client.Client, limit time.Duration) error {
	return waits.Until(ctx, limit, "the writer policy works", func(ctx context.Context) error {
		stamped, err := Stamped(ctx, admin)
		if err == nil && !stamped {
			err = errors.New("a write is not stamped")
		}
		return err
	})
}
