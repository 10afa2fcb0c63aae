// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// categoryKind is one kind of a category in the file of the chart, in the form of an entry of
// guard.resources.
type categoryKind struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	Scale    bool   `json:"scale,omitempty"`
	Kind     string `json:"kind"`
}

func TestTheChartRegistersTheKindsThatACategoryOfAGuardHas(t *testing.T) {
	categories := map[v1alpha1.ResourceCategory][]categoryKind{}
	for _, c := range specguard.Categories() {
		for _, k := range c.Kinds {
			categories[c.Name] = append(categories[c.Name], categoryKind{k.Group, k.Version, k.Resource, k.Scale, k.Kind})
		}
	}
	raw, err := json.MarshalIndent(categories, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join(rendered.ChartDir(), "files", "categories.json"), string(raw)+"\n")
}

func TestEachCategoryIsAValueOfTheChartAndOfGuards(t *testing.T) {
	var want []any
	for _, c := range specguard.Categories() {
		want = append(want, string(c.Name))
	}
	schema := map[string]any{}
	raw, err := os.ReadFile(filepath.Join(rendered.ChartDir(), "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	crd := map[string]any{"spec": specOfFile(t, "specguards.plumbline.dev")}
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	for name, enum := range map[string]struct {
		in   any
		path []string
	}{
		"chart":     {schema, []string{"properties", "guard", "properties", "resources", "items", "then", "enum"}},
		"SpecGuard": {versions[0], []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "categories", "items", "enum"}},
	} {
		got, _, err := unstructured.NestedSlice(enum.in.(map[string]any), enum.path...)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestACategoryStandsForItsKinds(t *testing.T) {
	single := func(kinds ...string) string { return "guard.resources=[" + strings.Join(kinds, ",") + "]" }
	entry := func(group, resource string) string {
		return fmt.Sprintf(`{"group":%q,"version":"v1","resource":%q}`, group, resource)
	}
	widgets := entry("example.com", "widgets")
	tests := map[string]struct{ categories, kinds string }{
		"beside a kind of its own": {
			`guard.resources=[` + widgets + `,"Networking"]`,
			single(widgets, entry("", "services"), entry("networking.k8s.io", "ingresses"), entry("networking.k8s.io", "networkpolicies")),
		},
		"and a single kind that it contains counts once": {
			`guard.resources=["Configuration",` + entry("", "configmaps") + `]`,
			single(entry("", "configmaps"), entry("", "limitranges"), entry("", "resourcequotas")),
		},
		"also where the executor may write": {
			`guard.resources=["RBAC","Storage"]`,
			single(entry("rbac.authorization.k8s.io", "roles"), entry("rbac.authorization.k8s.io", "rolebindings"), entry("", "serviceaccounts"), entry("", "persistentvolumeclaims")),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := func(resources string) string {
				return random.ReplaceAllString(render(t, true, "--set", "executor.enabled=true", "--set-json", resources).text, "${1}<random>")
			}
			if diff := cmp.Diff(manifest(test.kinds), manifest(test.categories)); diff != "" {
				t.Errorf("(-single kinds +categories):\n%s", diff)
			}
		})
	}
}
