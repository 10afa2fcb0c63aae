// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/test/harness/pages"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// TestEachManifestOfAPageIsAccepted tries the manifests that readers copy.
func TestEachManifestOfAPageIsAccepted(t *testing.T) {
	manifests, err := pages.Read(rendered.RepositoryDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifests {
		t.Run(m.Place, func(t *testing.T) {
			t.Parallel()
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(m.Body), &u.Object); err != nil {
				t.Fatalf("reading the manifest: %v", err)
			}
			namespaced, err := kube.IsObjectNamespaced(u)
			if err != nil {
				t.Fatalf("asking for the scope of the kind: %v", err)
			}
			if namespaced {
				u.SetNamespace(namespace)
			}
			if err := dryCreate(t, u); err != nil {
				t.Error(err)
			}
		})
	}
}
