// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// breakage is one way in which an installation can be wrong.
type breakage func(t *testing.T, s *Snapshot)

// TestChecks_Golden breaks a healthy installation in one way at a time, and
// holds what the check says of it against testdata/<check>.txt.
func TestChecks_Golden(t *testing.T) {
	for id, cases := range breakages() {
		t.Run(id, func(t *testing.T) {
			var b strings.Builder
			for _, name := range slices.Sorted(maps.Keys(cases)) {
				s := healthy(t)
				cases[name](t, s)
				fmt.Fprintf(&b, "== %s\n%s\n", name, answersOf(s, id))
			}
			golden.Check(t, filepath.Join("testdata", id+".txt"), b.String())
		})
	}
}

// answersOf draws what one check says, the fix without its YAML.
func answersOf(s *Snapshot, id string) string {
	var b strings.Builder
	for _, f := range Examine(s).Findings {
		if f.ID == id {
			fix, _, _ := strings.Cut(f.Fix, "\n")
			fmt.Fprintf(&b, "%s %s\n  %s\n", f.Severity, f.Object, f.Message)
			if fix != "" {
				fmt.Fprintf(&b, "  fix: %s\n", fix)
			}
		}
	}
	return b.String()
}

// TestEveryCheck_IsBroken asks that each check has a case in which it finds
// something, and one in which it does not know.
func TestEveryCheck_IsBroken(t *testing.T) {
	all := breakages()
	for _, check := range Checks() {
		cases := all[check.ID]
		bad, unknown := false, false
		for _, breaks := range cases {
			s := healthy(t)
			breaks(t, s)
			for _, f := range check.run(s) {
				bad = bad || f.Severity.rank() <= check.Worst.rank() && f.Severity != Unknown
				unknown = unknown || f.Severity == Unknown
			}
		}
		if !bad {
			t.Errorf("%s never finds anything of severity %s in %d cases", check.ID, check.Worst, len(cases))
		}
		if !unknown {
			t.Errorf("%s never answers Unknown in %d cases", check.ID, len(cases))
		}
	}
	for id := range all {
		if !slices.ContainsFunc(Checks(), func(c Check) bool { return c.ID == id }) {
			t.Errorf("there is no check %s", id)
		}
	}
}

func TestAHealthyInstallation_PassesEverything(t *testing.T) {
	report := Examine(healthy(t))
	for _, f := range report.Findings {
		if f.Severity != OK {
			t.Errorf("%s: %s %s: %s", f.ID, f.Severity, f.Object, f.Message)
		}
	}
	if got := report.Decide(Warning); got != Passed {
		t.Errorf("the decision is %s", got)
	}
	if report.Summary.OK != len(Checks()) {
		t.Errorf("%d of %d checks answered OK", report.Summary.OK, len(Checks()))
	}
}

// TestNothingRead_IsNeverOK: a snapshot without anything in it passes nothing.
func TestNothingRead_IsNeverOK(t *testing.T) {
	report := Examine(&Snapshot{})
	for _, f := range report.Findings {
		if f.Severity == OK || f.Severity == Info {
			t.Errorf("%s answers %s without having read anything: %s", f.ID, f.Severity, f.Message)
		}
	}
	if got := report.Decide(Critical); got == Passed {
		t.Errorf("the decision is %s", got)
	}
}

// hidden makes one read of a snapshot unknown.
var hidden = map[string]func(*Snapshot){
	"resources":   func(s *Snapshot) { s.Resources = forbidden[[]Resource]("discovery") },
	"webhooks":    func(s *Snapshot) { s.Webhooks = forbidden[[]Webhook]("list webhooks") },
	"policies":    func(s *Snapshot) { s.Policies = forbidden[Policies]("list policies") },
	"roles":       func(s *Snapshot) { s.Roles = forbidden[Roles]("list roles") },
	"guards":      func(s *Snapshot) { s.Guards = forbidden[[]Guard]("list guards") },
	"baselines":   func(s *Snapshot) { s.Baselines = forbidden[Baselines]("list baselines") },
	"workloads":   func(s *Snapshot) { s.Workloads = forbidden[[]Workload]("list deployments") },
	"pods":        func(s *Snapshot) { s.Pods = forbidden[[]Pod]("list pods") },
	"service":     func(s *Snapshot) { s.Service = forbidden[ServiceStatus]("get services") },
	"certificate": func(s *Snapshot) { s.Certificate = forbidden[Certificate]("get secrets") },
	"lease":       func(s *Snapshot) { s.AssessorLease = forbidden[Lease]("get leases") },
	"namespaces": func(s *Snapshot) {
		s.Namespaces = forbidden[map[string]map[string]string]("list namespaces")
	},
	"remediation policies": func(s *Snapshot) {
		s.Remediation.Policies = forbidden[[]v1alpha1.RemediationPolicy]("list remediationpolicies")
	},
	"environments": func(s *Snapshot) { s.Remediation.Environments = forbidden[[]Environment]("list environments") },
	"ledgers": func(s *Snapshot) {
		s.Remediation.Ledgers = forbidden[[]v1alpha1.RemediationLedger]("list remediationledgers")
	},
	"plans":          func(s *Snapshot) { s.Remediation.Plans = forbidden[Plans]("list remediationplans") },
	"executor lease": func(s *Snapshot) { s.Remediation.Lease = forbidden[Lease]("get leases") },
	"public keys":    func(s *Snapshot) { s.Remediation.PublicKeys = forbidden[string]("get configmaps") },
	"forgeries": func(s *Snapshot) {
		var hidden []Forgery // other snapshots share the old ones
		for _, f := range s.Probes.Forgeries {
			hidden = append(hidden, Forgery{Policy: f.Policy, What: f.What, Read: forbidden[Outcome]("create " + f.Policy)})
		}
		s.Probes.Forgeries = hidden
	},
	"write":    func(s *Snapshot) { s.Probes.Write = forbidden[Written]("create deployments") },
	"server":   func(s *Snapshot) { s.Server = forbidden[ServerVersion]("get /version") },
	"baseline": func(s *Snapshot) { s.Probes.Baseline = forbidden[Outcome]("create baselines") },
	"releases": func(s *Snapshot) {
		s.Delivery.Releases, s.Delivery.Held = forbidden[[]Release]("list abreleases"), forbidden[[]Held]("list abreleases")
		s.Delivery.Silences = forbidden[[]Silence]("list abreleases")
	},
	"strategies":   func(s *Snapshot) { s.Delivery.Strategies = forbidden[[]string]("list rolloutstrategies") },
	"routers":      func(s *Snapshot) { s.Routers.All = forbidden[[]Router]("list trafficrouters") },
	"routed":       func(s *Snapshot) { s.Routers.Releases = forbidden[[]RoutedRelease]("list abreleases") },
	"owned routes": func(s *Snapshot) { s.Routers.Owned = forbidden[[]gitops.Ownership]("get httproutes") },
	"deny":         func(s *Snapshot) { s.Probes.Deny = forbidden[Outcome]("create deployments") },
	"applications": func(s *Snapshot) {
		s.GitOps.Applications = forbidden[[]gitops.Application]("list applications.argoproj.io")
	},
	"settings": func(s *Snapshot) {
		s.GitOps.Settings = forbidden[map[string]map[string]string]("list configmaps named argocd-cm")
	},
	"flux": func(s *Snapshot) {
		s.GitOps.HelmRelease = forbidden[gitops.FluxObject]("get helmreleases.helm.toolkit.fluxcd.io in namespace flux-system")
		s.GitOps.Kustomization = forbidden[gitops.FluxObject]("get kustomizations.kustomize.toolkit.fluxcd.io in namespace flux-system")
	},
	"metadata": func(s *Snapshot) {
		hidden := map[string]Read[gitops.Metadata]{} // other snapshots share the old one
		for id := range s.GitOps.Metadata {
			hidden[id] = forbidden[gitops.Metadata]("get secrets in namespace plumbline-system")
		}
		s.GitOps.Metadata = hidden
	},
}

func forbidden[T any](right string) Read[T] { return Read[T]{Right: right, Reason: "forbidden"} }

// exempt pairs say why hiding a read may make a check content.
var exempt = map[string]string{
	// What a write would show is a second opinion on the policies, which are read.
	"policy.baseline-writers/baseline":    "the objects are read; the write only adds proof",
	"rbac.baselines/baseline":             "the objects are read; the write only adds proof",
	"policy.policy-writers/forgeries":     "the objects are read; the write only adds proof",
	"policy.plan-writers/forgeries":       "the objects are read; the write only adds proof",
	"policy.assessment-writers/forgeries": "the objects are read; the write only adds proof",
	"policy.request-writers/forgeries":    "the objects are read; the write only adds proof",
	"policy.ledger-writers/forgeries":     "the objects are read; the write only adds proof",
	"policy.executor-marks/forgeries":     "the objects are read; the write only adds proof",
	// A write that came back stamped proves the trust that the Secret would.
	"webhook.bundle/certificate":      "the API server has just verified a replica",
	"webhook.certificate/certificate": "each replica says what it serves",
}

// TestHidingAFact_NeverMakesItGood: where a check finds a Warning or worse, it
// must not become content because something could not be read.
func TestHidingAFact_NeverMakesItGood(t *testing.T) {
	for id, cases := range breakages() {
		for name, breaks := range cases {
			full := healthy(t)
			breaks(t, full)
			if worstOf(full, id).rank() > Warning.rank() {
				continue
			}
			for read, hide := range hidden {
				if exempt[id+"/"+read] != "" {
					continue
				}
				s := *full
				hide(&s)
				if got := worstOf(&s, id); got.rank() > Unknown.rank() {
					t.Errorf("%s, %q: %s when %s cannot be read", id, name, got, read)
				}
			}
		}
	}
}

func worstOf(s *Snapshot, id string) Severity {
	i := slices.IndexFunc(Checks(), func(c Check) bool { return c.ID == id })
	worst := OK
	for _, f := range Checks()[i].run(s) {
		if f.Severity.rank() < worst.rank() {
			worst = f.Severity
		}
	}
	return worst
}
