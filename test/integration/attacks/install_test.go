// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// notInstalled are the chart's objects that nothing here would run or route.
var notInstalled = []string{"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}

// install installs the chart but for its pods, makes kubeconfigs for both
// service accounts, and waits until the policies work.
func install(ctx context.Context, helm *rendered.Client) (err error) {
	if err := errors.Join(v1alpha1.AddToScheme(scheme.Scheme), apiextensionsv1.AddToScheme(scheme.Scheme)); err != nil {
		return fmt.Errorf("adding kinds to the scheme: %w", err)
	}
	if admin, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	if hookPort, err = freeport.Claim(); err != nil {
		return err
	}
	for _, name := range []string{rendered.Namespace, "ci", "flux"} {
		if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	if err := createKinds(ctx); err != nil {
		return err
	}
	if err := createChart(ctx, helm); err != nil {
		return err
	}
	if err := apiserver.Bind(ctx, admin, roots, "cluster-admin", roots); err != nil {
		return err
	}
	for _, account := range []string{"plumbline-webhook", "plumbline-assessor"} {
		if err := writeKubeconfig(ctx, account); err != nil {
			return err
		}
	}
	return awaitInForce(ctx)
}

func createChart(ctx context.Context, helm *rendered.Client) error {
	objects, err := apiserver.Render(ctx, helm, "--values", "testdata/values.yaml")
	if err != nil {
		return err
	}
	for _, object := range objects {
		if rendered.IsHook(object) || slices.Contains(notInstalled, object.GetKind()) {
			continue
		}
		if err := reachByAddress(object); err != nil {
			return err
		}
		if err := admin.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s: %w", rendered.ID(object), err)
		}
	}
	return nil
}

// reachByAddress replaces the Service in the webhook configurations, which
// nothing would route here.
func reachByAddress(object *unstructured.Unstructured) error {
	if kind := object.GetKind(); kind != "MutatingWebhookConfiguration" && kind != "ValidatingWebhookConfiguration" {
		return nil
	}
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("reading %s: %w", rendered.ID(object), err)
	}
	for _, w := range webhooks {
		path, _, err := unstructured.NestedString(w.(map[string]any), "clientConfig", "service", "path")
		if err != nil {
			return fmt.Errorf("reading %s: %w", rendered.ID(object), err)
		}
		w.(map[string]any)["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d%s", hookPort, path)}
	}
	return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
}

// createKinds makes a kind that the role view does not cover, and one whose
// group and plural read like those of a built-in kind.
func createKinds(ctx context.Context) error {
	for plural, group := range map[string]string{"widgets": "example.org", "deployments": "apps.example.org"} {
		kind := map[string]string{"widgets": "Widget", "deployments": "Deployment"}[plural]
		open := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
		crd := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: group, Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind, ListKind: kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: open},
				}},
			},
		}
		if err := admin.Create(ctx, crd); err != nil {
			return fmt.Errorf("creating the kind %s: %w", crd.Name, err)
		}
	}
	return nil
}

// awaitInForce waits until the writer policy works and the roles have been filled.
func awaitInForce(ctx context.Context) error {
	return waits.Until(ctx, patience, "the policies work and the roles are filled", func(ctx context.Context) error {
		probe := deployment("default", "probe")
		if err := admin.Create(ctx, probe, client.DryRunAll); err != nil {
			return err // policies that are only half there may refuse
		}
		var view rbacv1.ClusterRole
		if err := admin.Get(ctx, client.ObjectKey{Name: "view"}, &view); err != nil {
			return err
		}
		aggregated := slices.ContainsFunc(view.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "baselines") })
		b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}}
		b.Spec.Target = v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "x"}
		stamped, err := probe.Annotations[v1alpha1.AnnotationWriter] != "", admin.Create(ctx, b, client.DryRunAll)
		if !aggregated || !stamped || !apierrors.IsForbidden(err) {
			return fmt.Errorf("roles filled: %t, stamped: %t, a stranger's Baseline: %v", aggregated, stamped, err) //nolint:errorlint // it may be nil
		}
		return nil
	})
}
