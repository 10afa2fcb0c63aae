// SPDX-License-Identifier: Apache-2.0

package work

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ownsReplicas says whether a tool of GitOps sets spec.replicas of a Deployment, and would so undo what a run
// gives it. A tool that applies on the client side keeps its manifest in an annotation, and one that applies on
// the server side owns the fields that it sets. Of a tool that does neither it is not known, so the tool counts
// as the owner.
func ownsReplicas(deployment *unstructured.Unstructured, tool string) bool {
	if tool == "" {
		return false
	}
	if last, is := deployment.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; is {
		var manifest struct {
			Spec struct {
				Replicas *int64 `json:"replicas"`
			} `json:"spec"`
		}
		return json.Unmarshal([]byte(last), &manifest) != nil || manifest.Spec.Replicas != nil
	}
	hasApplied := false
	for _, entry := range deployment.GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		if hasApplied = true; hasReplicas(&entry) {
			return true
		}
	}
	return !hasApplied
}

// hasReplicas says whether a manager owns spec.replicas. A record that cannot be read may own it.
func hasReplicas(entry *metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return true
	}
	var fields struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if json.Unmarshal([]byte(entry.FieldsV1.GetRawString()), &fields) != nil {
		return true
	}
	_, is := fields.Spec["f:replicas"]
	return is
}
