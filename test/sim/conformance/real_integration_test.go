// SPDX-License-Identifier: Apache-2.0

//go:build integration

package conformance_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	harness "github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/conformance"
)

func TestTheRealServerAnswersAsTheTableSays(t *testing.T) {
	server, err := harness.Start(func(e *envtest.Environment) { e.CRDs = []*apiextensionsv1.CustomResourceDefinition{widgets()} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := rest.HTTPClientFor(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	conforms(t, over(t, client, strings.TrimSuffix(server.Config.Host, "/")))
}

func over(t *testing.T, client *http.Client, host string) conformance.Server {
	return func(method, path, contentType string, body []byte) (int, []byte, error) {
		request, err := http.NewRequestWithContext(t.Context(), method, host+path, bytes.NewReader(body))
		if err != nil {
			return 0, nil, err
		}
		request.Header.Set("Content-Type", contentType)
		answer, err := client.Do(request)
		if err != nil {
			return 0, nil, err
		}
		defer answer.Body.Close()
		raw, err := io.ReadAll(answer.Body)
		return answer.StatusCode, raw, err
	}
}

// widgets is a custom kind as our own are: with a status, and a spec that is required.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	replicas := apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"replicas": {Type: "integer", Format: "int64"}},
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.sim.plumbline.dev"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "sim.plumbline.dev", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Required: []string{"spec"},
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": replicas, "status": replicas},
				}},
			}},
		},
	}
}
