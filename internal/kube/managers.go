// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// EncodeFieldManagers encodes the field managers of an object as a BaselineRevision holds
// them, without those of subresources. The result is nil when there are none, or they are too
// large to be kept.
func EncodeFieldManagers(managers []metav1.ManagedFieldsEntry) []byte {
	kept := slices.DeleteFunc(slices.Clone(managers), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" })
	if len(kept) == 0 {
		return nil
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return nil // a repair then leaves its fields without an owner
	}
	if encoded := Compress(raw); len(encoded) <= v1alpha1.MaxFieldManagersBytes {
		return encoded
	}
	return nil
}

// DecodeFieldManagers decodes the field managers that a BaselineRevision holds; none when the
// revision holds none.
func DecodeFieldManagers(r *v1alpha1.BaselineRevision) ([]metav1.ManagedFieldsEntry, error) {
	if len(r.Spec.FieldManagers) == 0 {
		return nil, nil
	}
	raw, err := Decompress(r.Spec.FieldManagers)
	if err != nil {
		return nil, fmt.Errorf("field managers of revision %s: %w", r.Name, err)
	}
	var managers []metav1.ManagedFieldsEntry
	if err := json.Unmarshal(raw, &managers); err != nil {
		return nil, fmt.Errorf("field managers of revision %s: %w", r.Name, err)
	}
	return managers, nil
}
