// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestFindOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		managers            []string
		want                Owner
		text                string
	}{
		"without a mark": {managers: []string{"kubectl", "plumbline-xds"}},
		"a tracking annotation of Argo CD": {
			annotations: map[string]string{ArgoCDTracking: "shop:gateway.networking.k8s.io/HTTPRoute:shop/web"},
			want:        Owner{Tool: ArgoCD, Kind: ApplicationKind, Name: "shop"}, text: "Argo CD (Application shop)",
		},
		"a tracking annotation with the namespace": {
			annotations: map[string]string{ArgoCDTracking: "teams_shop:gateway.networking.k8s.io/HTTPRoute:shop/web"},
			want:        Owner{ArgoCD, ApplicationKind, "teams", "shop"}, text: "Argo CD (Application teams/shop)",
		},
		"a label of Argo CD": {
			labels: map[string]string{ArgoCDInstance: "shop"}, want: Owner{Tool: ArgoCD, Kind: ApplicationKind, Name: "shop"}, text: "Argo CD (Application shop)",
		},
		"labels of a Kustomization": {
			labels: map[string]string{FluxKustomize + "/name": "apps", FluxKustomize + "/namespace": "flux-system"},
			want:   Owner{Flux, "Kustomization", "flux-system", "apps"}, text: "Flux (Kustomization flux-system/apps)",
		},
		"labels of a HelmRelease": {
			labels: map[string]string{FluxHelm + "/name": "web", FluxHelm + "/namespace": "shop"},
			want:   Owner{Flux, "HelmRelease", "shop", "web"}, text: "Flux (HelmRelease shop/web)",
		},
		"a field manager of Argo CD": {managers: []string{"argocd-controller"}, want: Owner{Tool: ArgoCD}, text: "Argo CD"},
		"a field manager of Flux":    {managers: []string{"kubectl", "kustomize-controller"}, want: Owner{Tool: Flux}, text: "Flux"},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := FindOwner(tc.labels, tc.annotations, tc.managers)
			if diff := cmp.Diff(tc.want, got); diff != "" || found != (tc.want.Tool != "") {
				t.Errorf("found is %t (-want +got):\n%s", found, diff)
			}
			if found && got.String() != tc.text {
				t.Errorf("for people it is %q, want %q", got, tc.text)
			}
		})
	}
}

// The rule that a user copies has to be enough, and no more than the weights.
func TestARuleForARouteIsEnough(t *testing.T) {
	route := Route("HTTPRoute", "shop", "web", []int{2, 0, 1})
	spec := func(t *testing.T, owner Owner) []byte {
		t.Helper()
		fields, err := yaml.YAMLToJSON([]byte(owner.PasteRule(&route)))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(map[string]json.RawMessage{"spec": fields})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	t.Run("Argo CD", func(t *testing.T) {
		application, err := DecodeApplication(spec(t, Owner{Tool: ArgoCD}))
		if err != nil || !application.Respects {
			t.Fatalf("%+v, %v", application, err)
		}
		if verdict, err := JudgeArgoCD(application.Rules, &route); err != nil || !verdict.Covered() {
			t.Errorf("not covered is %+v, %v", verdict, err)
		}
		if verdict, err := JudgeArgoCD(nil, &route); err != nil || verdict.Covered() {
			t.Errorf("without a rule the verdict is %+v, %v", verdict, err)
		}
	})
	for _, kind := range []FluxKind{HelmRelease, Kustomization} {
		t.Run(string(kind), func(t *testing.T) {
			object, err := DecodeFlux(kind, spec(t, Owner{Tool: Flux, Kind: string(kind)}))
			if err != nil {
				t.Fatal(err)
			}
			if verdict, err := object.Judge(&route); err != nil || !verdict.Covered() {
				t.Errorf("not covered is %+v, %v", verdict, err)
			}
		})
	}
}
