// SPDX-License-Identifier: Apache-2.0

package doctor

import "strings"

// ArgoCDIgnore goes into spec of the Application that installs Plumbline.
const ArgoCDIgnore = `ignoreDifferences:
- group: admissionregistration.k8s.io
  kind: MutatingWebhookConfiguration
  name: plumbline
  jqPathExpressions: ['.webhooks[].clientConfig.caBundle']
- group: admissionregistration.k8s.io
  kind: ValidatingWebhookConfiguration
  name: plumbline
  jqPathExpressions: ['.webhooks[].clientConfig.caBundle']
- kind: Secret
  name: plumbline-webhook-tls
  jsonPointers: [/data]
- group: coordination.k8s.io
  kind: Lease
  jsonPointers: [/spec]
syncPolicy:
  syncOptions: [RespectIgnoreDifferences=true, ServerSideApply=true]`

// FluxIgnore goes into spec of the HelmRelease that installs Plumbline.
const FluxIgnore = `driftDetection:
  mode: enabled
  ignore:
  - paths: [/webhooks/0/clientConfig/caBundle]
    target: {kind: MutatingWebhookConfiguration, name: plumbline}
  - paths: [/webhooks/0/clientConfig/caBundle]
    target: {kind: ValidatingWebhookConfiguration, name: plumbline}
  - paths: [/data]
    target: {kind: Secret, name: plumbline-webhook-tls}
  - paths: [/spec]
    target: {kind: Lease}`

const (
	argoCDTracking = "argocd.argoproj.io/tracking-id"
	argoCDInstance = "argocd.argoproj.io/instance"
	fluxHelm       = "helm.toolkit.fluxcd.io/name"
	fluxKustomize  = "kustomize.toolkit.fluxcd.io/name"
)

// checkGitOps looks for tools that would take fields of ours which are written
// at run time for drift, and hands out the rules to paste. Whether rules are
// there already is not looked at: bundles that are overwritten show as
// webhook.bundle.
func checkGitOps(s *Snapshot) []Finding {
	if !s.Resources.known() {
		return []Finding{s.Resources.unknown("whether a GitOps tool is there")}
	}
	var out []Finding
	if s.serves("argoproj.io", "applications") {
		out = append(out, gitOpsFinding("Argo CD", s.managedBy(argoCDTracking, argoCDInstance), ArgoCDIgnore, "in spec of the Application"))
	}
	if s.serves("helm.toolkit.fluxcd.io", "helmreleases") || s.serves("kustomize.toolkit.fluxcd.io", "kustomizations") {
		out = append(out, gitOpsFinding("Flux", s.managedBy(fluxHelm, fluxKustomize), FluxIgnore, "in spec of the HelmRelease"))
	}
	return out
}

func gitOpsFinding(tool string, manages bool, rules, where string) Finding {
	message := tool + " is in this cluster; if it installs Plumbline, it must leave alone what is written at run time"
	if manages {
		message = tool + " installs Plumbline here; it must leave alone what is written at run time"
	}
	return Finding{Severity: Info, Message: message, Fix: where + ":\n" + strings.TrimSpace(rules)}
}

// managedBy looks for a tool's marks on our webhook configurations.
func (s *Snapshot) managedBy(keys ...string) bool {
	for _, w := range s.ours() {
		for _, key := range keys {
			if w.Labels[key] != "" || w.Annotations[key] != "" {
				return true
			}
		}
	}
	return false
}
