// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrUnknownKind says that the API server does not serve a kind; it may later,
// when a CustomResourceDefinition appears.
var ErrUnknownKind = errors.New("the API server does not serve this kind")

// ErrClusterScoped says that a kind has no namespace and so cannot be guarded.
var ErrClusterScoped = errors.New("the kind is cluster-scoped, only namespaced kinds can be guarded")

// ErrSecret says that Secrets are never guarded: their content must not be
// copied into Baselines.
var ErrSecret = errors.New("objects of kind Secret are never guarded")

// Resolve finds where the API server serves a kind. The error is one of
// ErrUnknownKind, ErrClusterScoped and ErrSecret when only a change of the
// guard or of the cluster can help, and another one when the API server could
// not be asked.
func Resolve(mapper meta.RESTMapper, gvk schema.GroupVersionKind) (Resource, error) {
	if gvk.Group == "" && gvk.Kind == "Secret" {
		return Resource{}, ErrSecret
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		if meta.IsNoMatchError(err) {
			return Resource{}, fmt.Errorf("%s: %w", gvk, ErrUnknownKind)
		}
		return Resource{}, fmt.Errorf("finding the resource of %s: %w", gvk, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return Resource{}, fmt.Errorf("%s: %w", gvk, ErrClusterScoped)
	}
	return Resource{GVK: gvk, Plural: mapping.Resource.Resource}, nil
}

// IsHopeless says whether only a change of the guard, or of what the cluster
// serves, can make the error go away.
func IsHopeless(err error) bool {
	return errors.Is(err, ErrUnknownKind) || errors.Is(err, ErrClusterScoped) || errors.Is(err, ErrSecret)
}
