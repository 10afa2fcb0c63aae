// SPDX-License-Identifier: Apache-2.0

package routeowner

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// RoutesOf returns the routes that a release names, in the order of its routers.
func RoutesOf(release *v1alpha1.ABRelease) (routes []gitops.RouteName) {
	for i := range release.Spec.Routers {
		if route := release.Spec.Routers[i].GatewayAPI; route != nil {
			routes = append(routes, gitops.RouteName{Kind: string(route.Kind), Namespace: release.Namespace, Name: route.Name})
		}
	}
	return routes
}

// FindOwnership reads a route, and the tool that applies it. found is false where no tool does. The error is that of the read of
// the route.
func FindOwnership(ctx context.Context, c client.Reader, route gitops.RouteName) (ownership gitops.Ownership, found bool, err error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: gitops.RouteGroup, Version: "v1", Kind: route.Kind})
	if err := c.Get(ctx, client.ObjectKey{Namespace: route.Namespace, Name: route.Name}, object); err != nil {
		return gitops.Ownership{}, false, err //nolint:wrapcheck // the caller tells absent from forbidden
	}
	owner, found := gitops.FindOwner(object.GetLabels(), object.GetAnnotations(), managersOf(object))
	if !found {
		return gitops.Ownership{}, false, nil
	}
	filled := gitops.Route(route.Kind, route.Namespace, route.Name, backendsOf(object))
	filled.Metadata = &gitops.Metadata{Labels: object.GetLabels(), Annotations: object.GetAnnotations()}
	ownership = gitops.Ownership{Route: route, Owner: owner, Rule: owner.PasteRule(&filled)}
	ownership.Ignored, err = judgeOwner(ctx, c, owner, &filled)
	if err != nil {
		ownership.Unread = err.Error()
	}
	return ownership, true, nil
}

func managersOf(object *unstructured.Unstructured) (managers []string) {
	for _, entry := range object.GetManagedFields() {
		managers = append(managers, entry.Manager)
	}
	return managers
}

// backendsOf counts the backends of each rule.
func backendsOf(object *unstructured.Unstructured) []int {
	rules, _, _ := unstructured.NestedSlice(object.Object, "spec", "rules")
	counts := make([]int, len(rules))
	for i := range rules {
		if rule, is := rules[i].(map[string]any); is {
			backends, _, _ := unstructured.NestedSlice(rule, "backendRefs")
			counts[i] = len(backends)
		}
	}
	return counts
}

// judgeOwner tells whether the owner ignores the weights. An error says why that is not known.
func judgeOwner(ctx context.Context, c client.Reader, owner gitops.Owner, route *gitops.Object) (bool, error) {
	switch {
	case owner.Name == "":
		return false, fmt.Errorf("no mark names the object of %s", owner.Tool)
	case owner.Tool == gitops.ArgoCD:
		return judgeApplication(ctx, c, owner, route)
	default:
		return judgeFlux(ctx, c, owner, route)
	}
}

func judgeApplication(ctx context.Context, c client.Reader, owner gitops.Owner, route *gitops.Object) (bool, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "ApplicationList"})
	if err := c.List(ctx, list, client.InNamespace(owner.Namespace)); err != nil {
		return false, fmt.Errorf("reading the Applications of Argo CD: %w", err)
	}
	at := slices.IndexFunc(list.Items, func(u unstructured.Unstructured) bool { return u.GetName() == owner.Name })
	if at < 0 {
		return false, fmt.Errorf("no Application %s is in this cluster", owner.Name)
	}
	application, err := decodeObject(&list.Items[at], gitops.DecodeApplication)
	if err != nil {
		return false, err
	}
	settings := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: application.Namespace, Name: gitops.SettingsName}, settings); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading the settings of Argo CD: %w", err)
	}
	shared, err := gitops.DecodeSettings(settings.Data)
	if err != nil {
		return false, fmt.Errorf("reading the settings of Argo CD: %w", err)
	}
	verdict, err := gitops.JudgeArgoCD(slices.Concat(application.Rules, shared), route) //nolint:contextcheck // an expression has a time of its own
	return application.Respects && verdict.Covered(), err                               //nolint:wrapcheck // it names the route
}

// fluxVersions are the served versions of the kinds of Flux.
var fluxVersions = map[gitops.FluxKind]schema.GroupVersion{
	gitops.HelmRelease:   {Group: gitops.FluxHelm, Version: "v2"},
	gitops.Kustomization: {Group: gitops.FluxKustomize, Version: "v1"},
}

func judgeFlux(ctx context.Context, c client.Reader, owner gitops.Owner, route *gitops.Object) (bool, error) {
	kind := gitops.FluxKind(owner.Kind)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(fluxVersions[kind].WithKind(owner.Kind))
	if err := c.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, object); err != nil {
		return false, fmt.Errorf("reading %s %s/%s: %w", owner.Kind, owner.Namespace, owner.Name, err)
	}
	flux, err := decodeObject(object, func(raw []byte) (gitops.FluxObject, error) { return gitops.DecodeFlux(kind, raw) })
	if err != nil || !flux.Detects() {
		return err == nil, err
	}
	verdict, err := flux.Judge(route)
	return verdict.Covered(), err //nolint:wrapcheck // it names the route
}

func decodeObject[T any](object *unstructured.Unstructured, from func([]byte) (T, error)) (T, error) {
	raw, err := object.MarshalJSON()
	if err != nil {
		var zero T
		return zero, fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return from(raw)
}
