// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/gitops"
)

func (s *Snapshot) checkFlux() []Finding {
	var out []Finding
	served := false
	for _, kind := range FluxKinds() {
		read := s.GitOps.HelmRelease
		if kind == gitops.Kustomization {
			read = s.GitOps.Kustomization
		}
		serves := s.serves(FluxResource(kind))
		served = served || serves
		namespace, name, marked := s.FluxOwner(kind)
		id := fmt.Sprintf("%s/%s/%s", kind, namespace, name)
		switch {
		case !marked:
		case !serves || read.State == ReadAbsent:
			out = append(out, elsewhere("Flux", id))
		case !read.present():
			out = append(out, read.unknown("what the "+id+" ignores"))
		default:
			out = append(out, s.checkFluxObject(&read.Value)...)
		}
	}
	if len(out) == 0 && served {
		out = append(out, Finding{Severity: Info, Message: "Flux is in this cluster, and does not install Plumbline",
			Fix: "if a HelmRelease is going to, this belongs into its spec:\n" + gitops.PasteFlux(gitops.HelmRelease, gitops.Gaps(s.FilledObjects()))})
	}
	return out
}

func (s *Snapshot) checkFluxObject(f *gitops.FluxObject) []Finding {
	if !f.Detects() {
		return []Finding{{Severity: OK, Object: f.ID(), Message: f.ID() + " does not look for drift"}}
	}
	answer := judge(s.FilledObjects(), f.Judge)
	needs := ""
	if f.Kind == gitops.Kustomization { // older ones drop the field
		needs = "with kustomize-controller 1.9 or newer, "
	}
	out := answer.findings(f.ID(), needs+addTo(f.ID())+gitops.PasteFlux(f.Kind, answer.gaps))
	for _, broken := range f.Broken() {
		out = append(out, Finding{Severity: Warning, Object: f.ID(), Message: "Flux cannot read a rule and fails until it can: " + broken, Fix: "correct the rule"})
	}
	if len(out) == 0 {
		out = append(out, Finding{Severity: OK, Object: f.ID(), Message: f.ID() + " leaves alone " + runTime})
	}
	return out
}
