// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// restarted is the annotation that a restart of pods sets, which makes no revision.
const restarted = "kubectl.kubernetes.io/restartedAt"

// TemplateHash returns the canonical hash of the pod template of a workload, which is the revision
// of its pods. The annotation of a restart is left out. The scheme is that of
// docs/reference/canonical-hash.md.
func TemplateHash(object *unstructured.Unstructured) (string, error) {
	template, is, err := unstructured.NestedMap(object.Object, "spec", "template")
	if err != nil || !is {
		return "", fmt.Errorf("reading spec.template of %s %s: it is missing", object.GetKind(), object.GetName())
	}
	unstructured.RemoveNestedField(template, "metadata", "annotations", restarted)
	if annotations, _, _ := unstructured.NestedMap(template, "metadata", "annotations"); len(annotations) == 0 {
		unstructured.RemoveNestedField(template, "metadata", "annotations")
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "spec": map[string]any{"template": template},
	})
	if err != nil {
		return "", fmt.Errorf("encoding the pod template of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	hash, err := canon.HashBody(body, canon.ParseGVK(object.GetAPIVersion(), object.GetKind()))
	if err != nil {
		return "", fmt.Errorf("hashing the pod template of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return string(hash), nil
}

// Replicas returns spec.replicas of a workload; 1 where it is absent, as the API server has it.
func Replicas(object *unstructured.Unstructured) int32 {
	n, is, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if err != nil || !is {
		return 1
	}
	return int32(min(max(n, 0), 1<<31-1)) //nolint:gosec // bounded in this line
}

func convert(fields map[string]any, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, into, true); err != nil {
		return fmt.Errorf("decoding it: %w", err)
	}
	return nil
}
