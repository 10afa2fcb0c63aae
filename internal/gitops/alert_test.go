// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// alerting has the fields of Provider and Alert (notification.toolkit.fluxcd.io/v1beta3) that the example uses.
type alerting struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Type          string              `json:"type,omitempty"`
		Channel       string              `json:"channel,omitempty"`
		SecretRef     map[string]string   `json:"secretRef,omitempty"`
		ProviderRef   map[string]string   `json:"providerRef,omitempty"`
		EventSeverity string              `json:"eventSeverity,omitempty"`
		EventMetadata map[string]string   `json:"eventMetadata,omitempty"`
		EventSources  []map[string]string `json:"eventSources,omitempty"`
	} `json:"spec"`
}

func TestTheAlertOfFluxIsAboutTheInstallation(t *testing.T) {
	raw, err := os.ReadFile("../../examples/flux-alert.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]alerting{}
	for part := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		var a alerting
		if err := yaml.UnmarshalStrict(part, &a); err != nil {
			t.Fatal(err)
		}
		if a.APIVersion != "notification.toolkit.fluxcd.io/v1beta3" {
			t.Errorf("%s is of %s", a.Kind, a.APIVersion)
		}
		found[a.Kind] = a
	}
	provider, alert := found["Provider"], found["Alert"]
	if alert.Spec.ProviderRef["name"] != provider.Metadata.Name || alert.Metadata.Namespace != provider.Metadata.Namespace {
		t.Errorf("the alert %+v does not lead to the provider %+v", alert, provider)
	}
	if !strings.Contains(string(raw), "secret generic "+provider.Spec.SecretRef["name"]+" -n "+provider.Metadata.Namespace) {
		t.Errorf("the command makes another Secret than %v", provider.Spec.SecretRef)
	}
	want := []map[string]string{{"kind": "HelmRelease", "name": "plumbline", "namespace": "plumbline-system"}, {"kind": "Kustomization", "name": "plumbline-guards"}}
	if diff := cmp.Diff(want, alert.Spec.EventSources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}
