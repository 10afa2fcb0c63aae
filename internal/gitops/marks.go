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

// Marked names the tool that marked an object by its labels or annotations; empty without a mark.
func Marked(labels, annotations map[string]string) string {
	for _, marks := range []map[string]string{labels, annotations} {
		switch {
		case marks[ArgoCDTracking] != "", marks[ArgoCDInstance] != "":
			return ArgoCD
		case marks[FluxKustomize+"/name"] != "", marks[FluxHelm+"/name"] != "":
			return Flux
		}
	}
	return ""
}
