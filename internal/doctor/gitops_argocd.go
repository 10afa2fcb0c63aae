// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/gitops"
)

// argoCDObjects are those that Argo CD would compare. It leaves out leases
// whatever its settings say, and the pods make them if need be.
func (s *Snapshot) argoCDObjects() []gitops.Object {
	return slices.DeleteFunc(s.FilledObjects(), func(o gitops.Object) bool { return o.Kind == "Lease" })
}

func (s *Snapshot) checkArgoCD() []Finding {
	mark := cmp.Or(s.findMark(argoCDTracking), s.findMark(argoCDInstance))
	if !s.ServesArgoCD() && mark == "" {
		return nil
	}
	if !s.ServesArgoCD() {
		return []Finding{elsewhere("Argo CD", mark)}
	}
	if !s.GitOps.Applications.present() {
		return []Finding{s.GitOps.Applications.unknown("the fields that the Applications of Argo CD ignore")}
	}
	var out []Finding
	for i := range s.GitOps.Applications.Value {
		if a := &s.GitOps.Applications.Value[i]; s.installs(a) {
			out = append(out, s.checkApplication(a)...)
		}
	}
	switch {
	case len(out) > 0:
		return out
	case mark != "":
		return []Finding{elsewhere("Argo CD", mark)}
	default:
		return []Finding{{Severity: Info, Message: "Argo CD is in this cluster, and no Application of it installs Plumbline",
			Fix: "if one is going to, this belongs into its spec:\n" + gitops.PasteArgoCD(gitops.Gaps(s.argoCDObjects()), true)}}
	}
}

// elsewhere is said of a tool that works from another cluster.
func elsewhere(tool, mark string) Finding {
	return Finding{Severity: Unknown,
		Message: fmt.Sprintf("cannot tell whether %s leaves alone %s: it installs Plumbline by %q, which is not in this cluster", tool, runTime, mark),
		Fix:     "look there, or leave this check out with --skip gitops.ignore"}
}

func (s *Snapshot) installs(a *gitops.Application) bool {
	tracking := s.findMark(argoCDTracking)
	if tracking == "" && s.findMark(argoCDInstance) == a.Name {
		return true
	}
	objects := s.argoCDObjects()
	return slices.ContainsFunc(objects[:ourWebhooksCount], func(o gitops.Object) bool { return a.Installs(&o, tracking) })
}

// checkApplication judges one Application that installs Plumbline by its own
// rules and, where these do not suffice, by those of its Argo CD.
func (s *Snapshot) checkApplication(a *gitops.Application) []Finding {
	objects := s.argoCDObjects()
	own := judge(objects, func(o *gitops.Object) (gitops.Verdict, error) { return gitops.JudgeArgoCD(a.Rules, o) })
	answer, rules := own, a.Rules
	var settings argoCDSettings
	if !own.complete() {
		settings = s.settingsOf(a)
		rules = slices.Concat(a.Rules, settings.rules)
		answer = judge(objects, func(o *gitops.Object) (gitops.Verdict, error) { return gitops.JudgeArgoCD(rules, o) })
	}
	id := "Application/" + a.Namespace + "/" + a.Name
	if settings.unknown.Severity == Unknown {
		answer.gapsAreUnknown(settings.unknown)
	}
	fix := addTo(id) + gitops.PasteArgoCD(answer.gaps, !a.Respects)
	out := answer.findings(id, fix)
	if !a.Respects {
		out = append(out, Finding{Severity: Warning, Object: id, Fix: fix,
			Message: "without the sync option " + gitops.RespectOption + " Argo CD ignores fields only when it compares, not when it syncs"})
	}
	for _, broken := range gitops.BrokenArgoCD(rules) {
		out = append(out, Finding{Severity: Warning, Object: id, Message: "Argo CD cannot read a rule, and compares no object until it can: " + broken, Fix: "correct the expression"})
	}
	if settings.malformed != "" && len(answer.gaps) > 0 {
		out = append(out, Finding{Severity: Warning, Object: "ConfigMap/" + settings.namespace + "/" + gitops.SettingsName,
			Message: "Argo CD cannot read its settings: " + settings.malformed, Fix: "correct the YAML of that key"})
	}
	if len(out) == 0 {
		out = append(out, Finding{Severity: OK, Object: id, Message: id + " leaves alone " + runTime})
	}
	return out
}

// argoCDSettings are the rules that hold for all Applications of one Argo CD.
type argoCDSettings struct {
	namespace, malformed string
	rules                []gitops.ArgoCDRule
	// unknown is a finding when they could not be read, and zero otherwise.
	unknown Finding
}

// settingsOf finds those of an Application: in its namespace, or the only ones.
func (s *Snapshot) settingsOf(a *gitops.Application) argoCDSettings {
	const question = "whether the settings of Argo CD ignore it"
	all := s.GitOps.Settings
	if !all.known() {
		return argoCDSettings{unknown: all.unknown(question)}
	}
	namespace := a.Namespace
	if _, ok := all.Value[namespace]; !ok && len(all.Value) > 1 {
		return argoCDSettings{unknown: Finding{Severity: Unknown,
			Message: fmt.Sprintf("cannot tell %s: there are %d ConfigMaps %s, and not one in namespace %s", question, len(all.Value), gitops.SettingsName, a.Namespace),
			Fix:     "see whether one of them has the rules, or put them into spec of the Application"}}
	} else if !ok {
		for only := range all.Value {
			namespace = only
		}
	}
	rules, err := gitops.DecodeSettings(all.Value[namespace])
	if err != nil {
		return argoCDSettings{namespace: namespace, malformed: strings.TrimSpace(err.Error())}
	}
	return argoCDSettings{namespace: namespace, rules: rules}
}
