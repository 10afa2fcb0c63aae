// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// CategoryKind is one kind of a category, as the API server serves it.
type CategoryKind struct {
	canon.GVK
	// Resource is the plural name in lower case.
	Resource string
	// Scale tells whether the kind has the subresource /scale.
	Scale bool
}

// Category is a list of kinds under one name.
type Category struct {
	Name  v1alpha1.ResourceCategory
	Kinds []CategoryKind
}

// Categories lists all categories. A kind is in one category only. The chart registers the
// same kinds from a file that a test compares with this list.
func Categories() []Category {
	const rbac = "rbac.authorization.k8s.io"
	return []Category{
		{v1alpha1.CategoryWorkloads, []CategoryKind{
			{canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments", true},
			{canon.GVK{Group: "apps", Version: "v1", Kind: "StatefulSet"}, "statefulsets", true},
			{canon.GVK{Group: "apps", Version: "v1", Kind: "DaemonSet"}, "daemonsets", false},
			{canon.GVK{Group: "batch", Version: "v1", Kind: "CronJob"}, "cronjobs", false},
		}},
		{v1alpha1.CategoryNetworking, []CategoryKind{
			{canon.GVK{Version: "v1", Kind: "Service"}, "services", false},
			{canon.GVK{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, "ingresses", false},
			{canon.GVK{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, "networkpolicies", false},
		}},
		{v1alpha1.CategoryRBAC, []CategoryKind{
			{canon.GVK{Group: rbac, Version: "v1", Kind: "Role"}, "roles", false},
			{canon.GVK{Group: rbac, Version: "v1", Kind: "RoleBinding"}, "rolebindings", false},
			{canon.GVK{Version: "v1", Kind: "ServiceAccount"}, "serviceaccounts", false},
		}},
		{v1alpha1.CategoryConfiguration, []CategoryKind{
			{canon.GVK{Version: "v1", Kind: "ConfigMap"}, "configmaps", false},
			{canon.GVK{Version: "v1", Kind: "LimitRange"}, "limitranges", false},
			{canon.GVK{Version: "v1", Kind: "ResourceQuota"}, "resourcequotas", false},
		}},
		{v1alpha1.CategoryAvailability, []CategoryKind{
			{canon.GVK{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, "horizontalpodautoscalers", false},
			{canon.GVK{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, "poddisruptionbudgets", false},
		}},
		{v1alpha1.CategoryStorage, []CategoryKind{
			{canon.GVK{Version: "v1", Kind: "PersistentVolumeClaim"}, "persistentvolumeclaims", false},
		}},
	}
}

// categories is [Categories] by name.
var categories = func() map[v1alpha1.ResourceCategory][]CategoryKind {
	byName := map[v1alpha1.ResourceCategory][]CategoryKind{}
	for _, c := range Categories() {
		byName[c.Name] = c.Kinds
	}
	return byName
}()

// FindCategory finds the category of a kind, by group and kind; ok is false without one.
func FindCategory(kind canon.GVK) (name v1alpha1.ResourceCategory, ok bool) {
	for _, c := range Categories() {
		if slices.ContainsFunc(c.Kinds, func(k CategoryKind) bool { return k.Group == kind.Group && k.Kind == kind.Kind }) {
			return c.Name, true
		}
	}
	return "", false
}

// NamedResource is one kind that a guard names, by itself or through a category.
type NamedResource struct {
	v1alpha1.GuardedResource
	// Path is the field that names the kind, from the root of the guard.
	Path *field.Path
	// Category is the category that contains the kind; empty for a kind of spec.resources.
	Category v1alpha1.ResourceCategory
}

// ListResources lists the kinds that a guard names: those of spec.resources, and then those
// of spec.categories that spec.resources does not name in another version. A category that
// does not exist has no kinds.
func ListResources(spec *v1alpha1.GuardSpec) []NamedResource {
	path := field.NewPath("spec")
	listed := make([]NamedResource, 0, len(spec.Resources))
	for i, r := range spec.Resources {
		listed = append(listed, NamedResource{GuardedResource: r, Path: path.Child("resources").Index(i)})
	}
	for i, category := range spec.Categories {
		for _, kind := range categories[category] {
			if !namesKind(spec.Resources, kind.GVK) {
				listed = append(listed, NamedResource{
					GuardedResource: v1alpha1.GuardedResource{APIVersion: schema.GroupVersionKind(kind.GVK).GroupVersion().String(), Kind: kind.Kind},
					Path:            path.Child("categories").Index(i), Category: category,
				})
			}
		}
	}
	return listed
}

func namesKind(resources []v1alpha1.GuardedResource, kind canon.GVK) bool {
	return slices.ContainsFunc(resources, func(r v1alpha1.GuardedResource) bool {
		named := canon.ParseGVK(r.APIVersion, r.Kind)
		return named.Group == kind.Group && named.Kind == kind.Kind
	})
}

// compileCategories refuses a category that does not exist. The schema refuses it as well.
func compileCategories(names []v1alpha1.ResourceCategory, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		if _, ok := categories[name]; !ok {
			var known []v1alpha1.ResourceCategory
			for _, c := range Categories() {
				known = append(known, c.Name)
			}
			errs = append(errs, field.NotSupported(path.Index(i), name, known))
		}
	}
	return errs
}
