// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Kinds lists the kinds that an API server serves and that pass a filter, each once for
// each of its versions. Subresources are left out.
func Kinds(config *rest.Config, keep func(*metav1.APIResource) bool) ([]schema.GroupVersionKind, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building a discovery client: %w", err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("discovering kinds: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for _, list := range lists {
		for i := range list.APIResources {
			r := &list.APIResources[i]
			gvk := schema.FromAPIVersionAndKind(list.GroupVersion, r.Kind)
			if !strings.Contains(r.Name, "/") && keep(r) && !slices.Contains(kinds, gvk) {
				kinds = append(kinds, gvk)
			}
		}
	}
	return kinds, nil
}

// AnyKind keeps all kinds, reviews and other kinds without objects included.
func AnyKind(*metav1.APIResource) bool { return true }

// NamespacedObjects keeps the kinds whose objects lie in namespaces, and can be watched
// and updated.
func NamespacedObjects(r *metav1.APIResource) bool {
	return r.Namespaced && slices.Contains(r.Verbs, "watch") && slices.Contains(r.Verbs, "update")
}
