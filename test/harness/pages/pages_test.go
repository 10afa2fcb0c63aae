// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/pages"
)

func TestManifestsOfAPageAreItsObjectsOfPlumbline(t *testing.T) {
	text := strings.Join([]string{
		"```sh", "apiVersion: plumbline.dev/v1alpha1", "```",
		"```yaml", "kind: Service", "apiVersion: v1", "---", "apiVersion: plumbline.dev/v1alpha1", "kind: A", "```",
		"* item", "  ```yaml", "  apiVersion: plumbline.dev/v1alpha1", "  kind: B", "  ```",
		"```yaml", "spec: {}", "```",
	}, "\n")
	want := []pages.Manifest{
		{Place: "page.md:8", Body: "apiVersion: plumbline.dev/v1alpha1\nkind: A"},
		{Place: "page.md:13", Body: "apiVersion: plumbline.dev/v1alpha1\nkind: B"},
	}
	if diff := cmp.Diff(want, pages.OfPage("page.md", text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A reader copies the manifests of pages. The API server refuses one with an unknown field, and the tests
// of the kinds also try the rules of the schema.
func TestEachManifestOfAPageDecodesIntoItsKind(t *testing.T) {
	manifests, err := pages.Read("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(manifests) < 30 {
		t.Errorf("only %d manifests were found", len(manifests))
	}
	kinds := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	for _, m := range manifests {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(m.Body), &head); err != nil {
			t.Errorf("%s: %v", m.Place, err)
			continue
		}
		object, err := kinds.New(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind))
		if err != nil {
			t.Errorf("%s: %v", m.Place, err)
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(m.Body), object); err != nil {
			t.Errorf("%s: %v", m.Place, err)
		}
	}
}
