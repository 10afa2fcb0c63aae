// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"maps"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/gitops"
)

// argoCD puts Argo CD into the cluster, with an Application that installs
// Plumbline and has the given rules.
func argoCD(respects bool, rules ...gitops.ArgoCDRule) breakage {
	return func(_ *testing.T, s *Snapshot) {
		s.Resources.Value = append(s.Resources.Value, Resource{Group: argoCDGroup, Version: "v1alpha1", Name: "applications", Kind: "Application"})
		s.GitOps.Applications = Got([]gitops.Application{
			{Namespace: "argocd", Name: "shop", InCluster: true, Applied: []string{"apps/Deployment/web"}},
			{Namespace: "argocd", Name: "plumbline", InCluster: true, Respects: respects, Rules: rules,
				Applied: []string{"admissionregistration.k8s.io/MutatingWebhookConfiguration/plumbline"}},
		})
		s.GitOps.Settings = Got(map[string]map[string]string{"argocd": {}})
	}
}

// argoCDSays is a key of the settings of Argo CD.
func argoCDSays(key, value string) breakage {
	return func(_ *testing.T, s *Snapshot) { s.GitOps.Settings.Value["argocd"][key] = value }
}

// flux puts Flux into the cluster, with an object that installs Plumbline.
func flux(f gitops.FluxObject) breakage {
	return func(_ *testing.T, s *Snapshot) {
		group, resource := FluxResource(f.Kind)
		s.Resources.Value = append(s.Resources.Value, Resource{Group: group, Version: "v2", Name: resource, Kind: string(f.Kind)})
		f.Namespace, f.Name = "flux-system", "plumbline"
		for _, w := range s.ours() {
			w.Labels[group+"/name"], w.Labels[group+"/namespace"] = f.Name, f.Namespace
		}
		if f.Kind == gitops.HelmRelease {
			s.GitOps.HelmRelease = Got(f)
		} else {
			s.GitOps.Kustomization = Got(f)
		}
	}
}

func marked(key, value string) breakage {
	return func(_ *testing.T, s *Snapshot) {
		for _, w := range s.ours() {
			w.Labels[key] = value
		}
	}
}

var (
	allBundles = gitops.ArgoCDRule{Group: "admissionregistration.k8s.io", Kind: "*", JQPathExpressions: []string{".webhooks[]?.clientConfig.caBundle"}}
	allData    = gitops.ArgoCDRule{Kind: "Secret", JSONPointers: []string{"/data"}}
)

func gitOpsBreakages() map[string]map[string]breakage {
	cases := argoCDBreakages()
	maps.Copy(cases, fluxBreakages())
	cases["Argo Rollouts alone"] = on(func(s *Snapshot) {
		s.Resources.Value = append(s.Resources.Value, Resource{Group: argoCDGroup, Name: "rollouts"})
	})
	cases["discovery fails"] = hide("resources")
	cases["nobody may see the marks of a tool"] = hide("webhooks")
	return map[string]map[string]breakage{"gitops.ignore": cases}
}

func argoCDBreakages() map[string]breakage {
	const settingsKey = "resource.customizations.ignoreDifferences."
	broken := gitops.ArgoCDRule{Kind: "Deployment", JQPathExpressions: []string{".spec["}}
	endless := gitops.ArgoCDRule{Kind: "Secret", JQPathExpressions: []string{"last(repeat(.))"}}
	return map[string]breakage{
		"Argo CD, no rules":                                     argoCD(false),
		"Argo CD, all rules":                                    argoCD(true, allBundles, allData),
		"Argo CD, all rules, not for syncs":                     argoCD(false, allBundles, allData),
		"Argo CD, some rules":                                   argoCD(true, allBundles),
		"Argo CD, some keys of the Secret":                      argoCD(true, allBundles, gitops.ArgoCDRule{Kind: "Secret", JSONPointers: []string{"/data/ca.crt", "/data/tls.crt"}}),
		"Argo CD, a rule that is broken":                        argoCD(true, allBundles, allData, broken),
		"Argo CD, a rule that cannot be judged":                 argoCD(true, allBundles, endless),
		"Argo CD, the rest in its settings":                     both(argoCD(true, allBundles), argoCDSays(settingsKey+"Secret", "jsonPointers: [/data]")),
		"Argo CD, all in its settings":                          both(argoCD(true), argoCDSays(settingsKey+"all", "jsonPointers: [/data, /webhooks/0/clientConfig/caBundle]")),
		"Argo CD, settings that are malformed":                  both(argoCD(true, allBundles), argoCDSays(settingsKey+"Secret", "jsonPointers: [/data")),
		"Argo CD, malformed settings that nothing depends on":   both(argoCD(true, allBundles, allData), argoCDSays(settingsKey+"Secret", "[")),
		"Argo CD, settings nobody may read":                     both(argoCD(true, allBundles), hide("settings")),
		"Argo CD, settings that are not needed nobody may read": both(argoCD(true, allBundles, allData), hide("settings")),
		"Argo CD, Applications nobody may read":                 both(argoCD(true, allBundles, allData), hide("applications")),
		"Argo CD, its settings are in another namespace": both(argoCD(true, allBundles), on(func(s *Snapshot) {
			s.GitOps.Settings = Got(map[string]map[string]string{"gitops": {settingsKey + "Secret": "jsonPointers: [/data]"}})
		})),
		"Argo CD, two of them, neither where the Application is": both(argoCD(true, allBundles), on(func(s *Snapshot) {
			s.GitOps.Settings = Got(map[string]map[string]string{"one": {}, "two": {}})
		})),
		"Argo CD, where cert-manager issues the certificates": both(argoCD(true, allBundles), mutating(func(w *Webhook) {
			w.Annotations = map[string]string{certManagerMark: "plumbline-system/plumbline-webhook"}
		})),
		"Argo CD does not install Plumbline": both(argoCD(true), on(func(s *Snapshot) { s.GitOps.Applications.Value = s.GitOps.Applications.Value[:1] })),
		"Argo CD, by the mark on our objects": both(argoCD(true), on(func(s *Snapshot) { s.GitOps.Applications.Value[1].Applied = nil }),
			mutating(func(w *Webhook) {
				w.Annotations = map[string]string{argoCDTracking: "plumbline:admissionregistration.k8s.io/MutatingWebhookConfiguration:plumbline-system/plumbline"}
			})),
		"Argo CD, by a label of its own":                       both(argoCD(true), on(func(s *Snapshot) { s.GitOps.Applications.Value[1].Applied = nil }), marked(argoCDInstance, "plumbline")),
		"Argo CD of another cluster":                           marked(argoCDInstance, "plumbline"),
		"Argo CD of another cluster, with an Argo CD here too": both(argoCD(true), marked(argoCDInstance, "far-away"), on(func(s *Snapshot) { s.GitOps.Applications.Value = nil })),
	}
}

func fluxBreakages() map[string]breakage {
	ignore := func(rules ...gitops.FluxRule) gitops.FluxObject {
		return gitops.FluxObject{Kind: gitops.HelmRelease, Mode: "enabled", Rules: rules}
	}
	kustomization := func(rules ...gitops.FluxRule) gitops.FluxObject {
		return gitops.FluxObject{Kind: gitops.Kustomization, Rules: rules}
	}
	bundles := gitops.FluxRule{Paths: []string{"/webhooks/0/clientConfig/caBundle"}, Target: &gitops.FluxTarget{Kind: ".*WebhookConfiguration"}}
	data := gitops.FluxRule{Paths: []string{"/data"}, Target: &gitops.FluxTarget{Kind: "Secret", Name: "plumbline-webhook-tls"}}
	leases := gitops.FluxRule{Paths: []string{"/spec"}, Target: &gitops.FluxTarget{Kind: "Lease"}}
	return map[string]breakage{
		"Flux, no rules":                         flux(ignore()),
		"Flux, drift is not looked for":          flux(gitops.FluxObject{Kind: gitops.HelmRelease, Mode: "disabled"}),
		"Flux, drift is warned about":            flux(gitops.FluxObject{Kind: gitops.HelmRelease, Mode: "warn"}),
		"Flux, all rules":                        flux(ignore(bundles, data, leases)),
		"Flux, some rules":                       flux(ignore(bundles, leases)),
		"Flux, rules for every object":           flux(ignore(gitops.FluxRule{Paths: []string{"/webhooks", "/data", "/spec"}})),
		"Flux, rules for other objects":          flux(ignore(gitops.FluxRule{Paths: []string{"/webhooks", "/data", "/spec"}, Target: &gitops.FluxTarget{Namespace: "shop"}})),
		"Flux, a rule that is broken":            flux(ignore(bundles, data, gitops.FluxRule{Paths: []string{"/spec"}, Target: &gitops.FluxTarget{Kind: "("}})),
		"Flux, a Kustomization without rules":    flux(kustomization()),
		"Flux, a Kustomization with all rules":   flux(kustomization(bundles, data, leases)),
		"Flux, metadata nobody may read":         both(flux(ignore(bundles)), hide("metadata")),
		"Flux, all rules, metadata not needed":   both(flux(ignore(bundles, data, leases)), hide("metadata")),
		"Flux, its object nobody may read":       both(flux(ignore()), hide("flux")),
		"Flux does not install Plumbline":        both(flux(ignore()), marked(fluxHelm+"/name", "")),
		"Flux of another cluster":                both(marked(fluxHelm+"/name", "plumbline"), marked(fluxHelm+"/namespace", "flux-system")),
		"Flux, its object is in another cluster": both(flux(ignore()), on(func(s *Snapshot) { s.GitOps.HelmRelease = Gone[gitops.FluxObject]() })),
		"Flux, an object that is left alone": both(flux(ignore(bundles, leases)), on(func(s *Snapshot) {
			s.GitOps.Metadata["Secret/plumbline-system/plumbline-webhook-tls"] = Got(gitops.Metadata{Annotations: map[string]string{fluxHelm + "/driftDetection": "disabled"}})
		})),
	}
}
