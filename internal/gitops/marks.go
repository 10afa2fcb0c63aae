// SPDX-License-Identifier: Apache-2.0

package gitops

// The marks that the tools put on what they apply: annotations or labels of
// Argo CD, and the groups of Flux's labels, which go on with /name and /namespace.
const (
	ArgoCDTracking = "argocd.argoproj.io/tracking-id"
	ArgoCDInstance = "argocd.argoproj.io/instance"
	FluxHelm       = "helm.toolkit.fluxcd.io"
	FluxKustomize  = "kustomize.toolkit.fluxcd.io"
)

// The tools, as people know them.
const (
	ArgoCD = "Argo CD"
	Flux   = "Flux"
)

// Marked names the tool whose marks are among an object's labels; empty without any.
func Marked(labels map[string]string) string {
	switch {
	case labels[ArgoCDTracking] != "", labels[ArgoCDInstance] != "":
		return ArgoCD
	case labels[FluxKustomize+"/name"] != "", labels[FluxHelm+"/name"] != "":
		return Flux
	}
	return ""
}
