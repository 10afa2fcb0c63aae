// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The API server refuses a ledger that is beyond its schema, and no step would get
// a place in that ledger any more.
func TestLedgersStayWithinTheBoundsOfTheirSchema(t *testing.T) {
	content, err := os.ReadFile("../../../charts/plumbline/files/crds/plumbline.dev_remediationledgers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	versions, found, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil || !found || len(versions) != 1 {
		t.Fatalf("%d versions, error %v", len(versions), err)
	}
	w := newWorld(t)
	target := &w.plan.Spec.Plan.Targets[0]
	target.UID, target.BaselineName = "", strings.Repeat("x", 253)
	tests := map[string]struct {
		field string
		bound int
	}{
		"the chains of evidence":                  {"chains.maxItems", maxChains},
		"the name of a target that is to be made": {"entries.items.properties.targetUID.maxLength", len((&run{plan: w.plan}).request(0).TargetUID)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := "schema.openAPIV3Schema.properties.status.properties." + test.field
			got, found, err := unstructured.NestedFloat64(versions[0].(map[string]any), strings.Split(path, ".")...)
			if err != nil || !found || got != float64(test.bound) {
				t.Errorf("the schema says %v (found %t, error %v), the executor %d", got, found, err, test.bound)
			}
		})
	}
}
