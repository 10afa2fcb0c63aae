// SPDX-License-Identifier: Apache-2.0

package work

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// LeftMinimum returns the content that a work which holds the minimum of an autoscaler leaves in it. before is the
// content that was authorized last by none of the runs of the release, and authorized the authorized one. It returns
// nil if the work has found another minimum than that of before: the run puts in the end back what it has found,
// so to authorize the one would authorize the other.
func LeftMinimum(w *v1alpha1.ReleaseWork, before, authorized []byte) ([]byte, error) {
	held := w.Status.Held
	if !Holds(&w.Spec) || PutsBack(&w.Spec) || held == nil || held.FormerMinReplicas == nil || held.MinReplicas == nil {
		return nil, nil
	}
	found, err := decodeAutoscaler(before)
	if err != nil {
		return nil, err
	}
	left, err := decodeAutoscaler(authorized)
	if err != nil {
		return nil, err
	}
	if minReplicas(found) != *held.FormerMinReplicas {
		return nil, nil
	}
	if err := unstructured.SetNestedField(left.Object, int64(*held.MinReplicas), "spec", "minReplicas"); err != nil {
		return nil, fmt.Errorf("setting spec.minReplicas of an authorized HorizontalPodAutoscaler: %w", err)
	}
	content, err := json.Marshal(left.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the content of a HorizontalPodAutoscaler: %w", err)
	}
	return content, nil
}

// decodeAutoscaler reads the content of an autoscaler, as an authorized state keeps it.
func decodeAutoscaler(content []byte) (*unstructured.Unstructured, error) {
	a := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(content, &a.Object); err != nil {
		return nil, fmt.Errorf("decoding the authorized body of a HorizontalPodAutoscaler: %w", err)
	}
	if a.Object == nil {
		a.Object = map[string]any{}
	}
	return a, nil
}
