// SPDX-License-Identifier: Apache-2.0

package rendered

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Objects splits what Helm printed into objects.
func Objects(manifest string) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding object %d of the manifest: %w", len(objects), err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// ID names an object as Kind/namespace/name, or Kind/name when it is cluster-scoped.
func ID(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + "/" + object.GetName()
	}
	return object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
}

// IsHook says whether Helm applies the object on an event and not with the release.
func IsHook(object *unstructured.Unstructured) bool {
	_, hook := object.GetAnnotations()["helm.sh/hook"]
	return hook
}

// OfKind picks the objects of one kind.
func OfKind(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	var picked []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == kind {
			picked = append(picked, object)
		}
	}
	return picked
}

// Convert turns an object into a Go type; a field that the type does not have
// is an error, because a misspelt field of a manifest would do nothing.
func Convert[T any](object *unstructured.Unstructured) (*T, error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		return nil, fmt.Errorf("converting %s: %w", ID(object), err)
	}
	return typed, nil
}
