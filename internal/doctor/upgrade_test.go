// SPDX-License-Identifier: Apache-2.0

package doctor

import "testing"

// The command assumed a clone and the release plumbline, dropped new default values, and fought with GitOps.
func TestTheChartIsAppliedAgainByTheToolThatInstalledIt(t *testing.T) {
	// marked puts labels and annotations on our webhook configurations.
	marked := func(labels, annotations map[string]string) func(*Snapshot) {
		return func(s *Snapshot) {
			for _, w := range s.ours() {
				w.Labels, w.Annotations = labels, annotations
			}
		}
	}
	// orphaned has no webhook configurations, and labels and annotations on one Deployment.
	orphaned := func(labels, annotations map[string]string) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Webhooks.Value = nil
			w := &s.Workloads.Value[0]
			w.Labels, w.Annotations = labels, annotations
		}
	}
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		want   string
	}{
		"Helm, whose marks could not be read": {
			func(*Snapshot) {},
			"helm upgrade plumbline CHART -n plumbline-system --reset-then-reuse-values --force-conflicts  # CHART is the address or directory that it was installed from",
		},
		"Helm, with a release of another name": {
			marked(map[string]string{chartLabel: "plumbline-0.1.0"}, map[string]string{helmReleaseName: "guard", helmReleaseNamespace: "guards"}),
			"helm upgrade guard CHART -n guards --reset-then-reuse-values --force-conflicts  # CHART is the address or directory of plumbline-0.1.0",
		},
		"Helm, where the webhook configurations are gone": {
			orphaned(map[string]string{chartLabel: "plumbline-0.1.0"}, map[string]string{helmReleaseName: "guard"}),
			"helm upgrade guard CHART -n plumbline-system --reset-then-reuse-values --force-conflicts  # CHART is the address or directory of plumbline-0.1.0",
		},
		"Argo CD by its tracking id": {
			marked(nil, map[string]string{argoCDTracking: "platform:admissionregistration.k8s.io/ValidatingWebhookConfiguration:x/plumbline", helmReleaseName: "x"}),
			"argocd app sync platform",
		},
		"Argo CD by its label": {marked(map[string]string{argoCDInstance: "platform"}, nil), "argocd app sync platform"},
		"Flux by a HelmRelease": {
			marked(map[string]string{fluxHelm + "/name": "guard", fluxHelm + "/namespace": "flux"}, map[string]string{helmReleaseName: "guard"}),
			"flux reconcile helmrelease guard -n flux --force",
		},
		"Flux by a HelmRelease, where the webhook configurations are gone": {
			orphaned(map[string]string{fluxHelm + "/name": "guard", fluxHelm + "/namespace": "flux"}, map[string]string{helmReleaseName: "guard"}),
			"flux reconcile helmrelease guard -n flux --force",
		},
		"Flux by a Kustomization, where the webhook configurations are gone": {
			orphaned(map[string]string{fluxKustomize + "/name": "apps", fluxKustomize + "/namespace": "flux"}, nil),
			"flux reconcile kustomization apps -n flux --with-source",
		},
		"Flux by a Kustomization": {
			marked(map[string]string{fluxKustomize + "/name": "apps", fluxKustomize + "/namespace": "flux"}, nil),
			"flux reconcile kustomization apps -n flux --with-source",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			tc.change(s)
			if got := s.upgrade(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
