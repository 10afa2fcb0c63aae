// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The API server refuses a status that is beyond its schema. A ledger with a larger
// bound would come to a status that no executor can store.
func TestBoundsAreThoseOfTheSchema(t *testing.T) {
	content, err := os.ReadFile("../../../charts/plumbline/files/crds/plumbline.dev_remediationledgers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &crd); err != nil || len(crd.Spec.Versions) != 1 {
		t.Fatalf("%d versions, error %v", len(crd.Spec.Versions), err)
	}
	tests := map[string]struct {
		field string
		bound float64
	}{
		"entries":              {"entries.maxItems", maxEntries},
		"breakers":             {"breakers.maxItems", maxBreakers},
		"seconds of a verdict": {"entries.items.properties.verdictTimeoutSeconds.maximum", maxVerdictTimeout},
		"failures":             {"breakers.items.properties.failures.maximum", maxFailures},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := append([]string{"properties", "status", "properties"}, strings.Split(test.field, ".")...)
			got, found, err := unstructured.NestedFloat64(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, path...)
			if err != nil || !found || got != test.bound {
				t.Errorf("the schema says %v (found %t, error %v), the ledger %v", got, found, err, test.bound)
			}
		})
	}
}

func TestFailuresAreCountedUpToTheBoundOfTheSchema(t *testing.T) {
	tests := map[string]struct{ before, after int32 }{
		"one below it is counted": {maxFailures - 1, maxFailures},
		"one beyond it is not":    {maxFailures, maxFailures},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := Begin(epoch, true)
			s.Entries = []v1alpha1.LedgerEntry{{StepReference: step(1), PolicyUID: "p", TargetUID: "t1"}}
			s.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: "p", State: v1alpha1.BreakerOpen, Failures: test.before}}
			next, _ := Settle(&s, step(1), v1alpha1.LedgerFailed, epoch)
			if got := next.Breakers[0].Failures; got != test.after {
				t.Errorf("after %d failures and one more the ledger counts %d", test.before, got)
			}
		})
	}
}
