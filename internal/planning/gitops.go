// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/adopt"
	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/internal/kube"
)

// gitOpsTool names the tool that would put an object back itself; empty when none
// would. A tool leaves labels and annotations on what it applies, and is a field manager of it.
// All can be forged, or be left over; a mark too many only means that a person is
// asked.
func gitOpsTool(o *kube.Object) (string, error) {
	if tool := gitops.Marked(o.Labels, o.Annotations); tool != "" {
		return tool, nil
	}
	raw, err := o.ManagedFieldsJSON()
	if err != nil || raw == nil {
		return "", err
	}
	var entries []struct {
		Manager   string                            `json:"manager"`
		Operation metav1.ManagedFieldsOperationType `json:"operation"`
	}
	if err := json.Unmarshal(raw, &entries); err != nil {
		return "", err
	}
	for _, e := range entries {
		if tool := adopt.Tool(e.Manager); tool != "" {
			return tool, nil
		}
	}
	return "", nil
}
