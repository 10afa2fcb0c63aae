// SPDX-License-Identifier: Apache-2.0

package gitops

import "testing"

func TestMarked(t *testing.T) {
	tracked := map[string]string{ArgoCDTracking: "shop:apps/Deployment:shop/web"}
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		want                string
	}{
		"an object without marks is of no tool":       {labels: map[string]string{"app": "web"}, want: ""},
		"the tracking annotation is of Argo CD":       {annotations: tracked, want: ArgoCD},
		"the label of an Application is of Argo CD":   {labels: map[string]string{ArgoCDInstance: "shop"}, want: ArgoCD},
		"the label of a Kustomization is of Flux":     {labels: map[string]string{FluxKustomize + "/name": "shop"}, want: Flux},
		"the label of a HelmRelease is of Flux":       {labels: map[string]string{FluxHelm + "/name": "shop"}, want: Flux},
		"a label of Flux counts before an annotation": {labels: map[string]string{FluxKustomize + "/name": "shop"}, annotations: tracked, want: Flux},
		"an empty mark is none":                       {annotations: map[string]string{ArgoCDTracking: ""}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Marked(tc.labels, tc.annotations); got != tc.want {
				t.Errorf("the tool is %q, want %q", got, tc.want)
			}
		})
	}
}
