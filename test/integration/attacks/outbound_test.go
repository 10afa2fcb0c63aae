// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// leadsOut matches a name of a field by which a process could be sent somewhere.
var leadsOut = regexp.MustCompile(`(?i)ur[il]|addr|host|endpoint|server|proxy|callback|webhook|redirect|registry|bucket|socket|broker|dns|port$|ip$`)

// S18: no field of our kinds names a place to call.
func TestNothingThatATenantWritesLeadsToACall(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(rendered.ChartDir(), "files", "crds", "*.yaml"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d kinds: %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &crd); err != nil {
			t.Fatal(err)
		}
		if c := crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
			t.Errorf("%s is converted by a webhook", crd.Name)
		}
		for _, version := range crd.Spec.Versions {
			for _, path := range leading("", version.Schema.OpenAPIV3Schema) {
				if placeless[path] || crd.Spec.Scope == apiextensionsv1.ClusterScoped && ofPlatform[crd.Name+path] {
					continue
				}
				t.Errorf("%s %s has %s", crd.Name, version.Name, path)
			}
		}
	}
}

// placeless have such a name and name no place: numbers, one of which is the median of a metric during
// the drift, webhooks whose address is in a Secret of Plumbline's own namespace that the
// installation lists (delivery.gateSecrets), and the port of a backend of a route that another program calls.
var placeless = map[string]bool{
	".status.observed[].readyEndpoints": true, ".status.components[].metrics[].during": true, ".spec.rollout.gates.webhooks": true,
	".spec.routers[].services[].port": true,
}

// ofPlatform are places in kinds without a namespace, which the platform team writes. The rules of egress hold for them.
var ofPlatform = map[string]bool{
	"trafficrouters.plumbline.dev.spec.webhook": true, "trafficrouters.plumbline.dev.spec.webhook.url": true,
	"trafficrouters.plumbline.dev.spec.traefik.programs[].url": true, "trafficrouters.plumbline.dev.spec.traefik.ports[].port": true,
}

func leading(at string, schema *apiextensionsv1.JSONSchemaProps) []string {
	var found []string
	if schema == nil {
		return nil
	}
	if schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields {
		found = append(found, at+" (anything)")
	}
	for name, property := range schema.Properties {
		if leadsOut.MatchString(name) {
			found = append(found, at+"."+name)
		}
		found = append(found, leading(at+"."+name, &property)...)
	}
	if schema.Items != nil {
		found = append(found, leading(at+"[]", schema.Items.Schema)...)
	}
	if schema.AdditionalProperties != nil {
		found = append(found, leading(at+"{}", schema.AdditionalProperties.Schema)...)
	}
	return found
}

// S18: of the chart's values, which only who installs may set, these name a place.
func TestTheValuesThatNameAPlaceAreKnown(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(rendered.ChartDir(), "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	found := leadingValues("", schema)
	slices.Sort(found)
	want := []string{
		"api.hosts",             // names that callers ask for, and no place that we connect to
		"executor.evidence.url", // where the executor keeps its records
		"gateway.hosts",         // domains that clients outside ask for, and no place that we connect to
		"gateway.port",          // where the gateway listens, and its Service
		"gateway.service.port",
		"image.registry",            // where the kubelet pulls from
		"mesh.inject.redirectImage", // images of sidecars
		"mesh.proxy",
		"metrics.alertmanager.url", // what tells assessments which alerts fire
		"metrics.prometheus.url",   // what answers the queries of rollouts and assessments
		"monitoring.apiServerMetrics",
		"networkPolicy.apiServerPorts", // what our own processes are let out to
		"podSecurityContext",           // the letters of "security"
		"redis.external.address",
		"securityContext",
		"webhook",
		"webhook.healthPort", // where we listen
		"webhook.hostNetwork",
		"webhook.metricsPort",
		"webhook.port",
		"webhookConfiguration",
		"xds.verifyProxyAddress", // whether the address of a connection is compared, and none that we connect to
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("values (-known +found):\n%s", diff)
	}
}

func leadingValues(at string, schema map[string]any) []string {
	var found []string
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		path := strings.TrimPrefix(at+"."+name, ".")
		if leadsOut.MatchString(name) {
			found = append(found, path)
		}
		if inner, ok := property.(map[string]any); ok {
			found = append(found, leadingValues(path, inner)...)
		}
	}
	return found
}

// S18: the API server is sent to our own Service and nowhere else, with every
// values file that the chart is tested with.
func TestTheAPIServerIsSentToOurServiceAlone(t *testing.T) {
	helm, err := rendered.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(rendered.ChartDir(), "ci", "*-values.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d values files: %v", len(files), err)
	}
	for _, file := range files {
		out, err := helm.Template(t.Context(), "--values", file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := rendered.Objects(out)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, object := range slices.Concat(rendered.OfKind(objects, "MutatingWebhookConfiguration"), rendered.OfKind(objects, "ValidatingWebhookConfiguration")) {
			webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range webhooks {
				seen++
				config, _, _ := unstructured.NestedMap(w.(map[string]any), "clientConfig") // what is not there fails below
				service, _ := config["service"].(map[string]any)
				if config["url"] != nil || service["name"] != "plumbline-webhook" || service["namespace"] != rendered.Namespace {
					t.Errorf("%s: %s is sent to %v", filepath.Base(file), rendered.ID(object), config)
				}
			}
		}
		want := 2
		if injects(objects) {
			want = 4 // one for pods of namespaces that ask, one for pods that do
		}
		if seen != want {
			t.Errorf("%s has %d webhooks, want %d", filepath.Base(file), seen, want)
		}
	}
}

// injects says whether there is a discovery server, for whose proxies pods ask.
func injects(objects []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(rendered.OfKind(objects, "Deployment"), func(o *unstructured.Unstructured) bool {
		return o.GetName() == "plumbline-xds"
	})
}
