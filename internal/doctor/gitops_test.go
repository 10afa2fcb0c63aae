// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/certs"
	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// TestGitOps_WhatIsPastedIsEnough: after the fix of a finding was carried out,
// the check is content. Lists are extended and maps merged, as its text says.
func TestGitOps_WhatIsPastedIsEnough(t *testing.T) {
	pasted := 0
	for name, breaks := range gitOpsBreakages()["gitops.ignore"] {
		paste := pasteIntoFlux
		if strings.HasPrefix(name, "Argo CD,") {
			paste = pasteIntoApplication
		}
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			breaks(t, s)
			fixes := pastes(s)
			for _, fix := range fixes {
				paste(t, s, []byte(fix))
				pasted++
			}
			if left := pastes(s); len(left) > 0 {
				t.Errorf("after pasting %q this is left to paste: %q", fixes, left)
			}
		})
	}
	if pasted == 0 {
		t.Error("nothing was pasted")
	}
}

// pastes are the different YAML documents that findings ask to paste.
func pastes(s *Snapshot) []string {
	var out []string
	for _, f := range checkGitOps(s) {
		if _, text, ok := strings.Cut(f.Fix, ":\n"); ok && f.Severity == Warning && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

func specOf(t *testing.T, fragment []byte) []byte {
	t.Helper()
	var spec map[string]any
	if err := yaml.UnmarshalStrict(fragment, &spec); err != nil {
		t.Fatalf("%v\n%s", err, fragment)
	}
	raw, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func pasteIntoApplication(t *testing.T, s *Snapshot, fragment []byte) {
	more, err := gitops.DecodeApplication(specOf(t, fragment))
	if err != nil {
		t.Fatal(err)
	}
	a := &s.GitOps.Applications.Value[1]
	a.Rules, a.Respects = append(a.Rules, more.Rules...), a.Respects || more.Respects
}

func pasteIntoFlux(t *testing.T, s *Snapshot, fragment []byte) {
	f := &s.GitOps.HelmRelease.Value
	if s.GitOps.Kustomization.present() {
		f = &s.GitOps.Kustomization.Value
	}
	more, err := gitops.DecodeFlux(f.Kind, specOf(t, fragment))
	if err != nil {
		t.Fatal(err)
	}
	f.Rules = append(f.Rules, more.Rules...)
}

// TestGitOps_FixesAreWrittenOut holds the whole text to paste of some cases.
func TestGitOps_FixesAreWrittenOut(t *testing.T) {
	cases := gitOpsBreakages()["gitops.ignore"]
	var b strings.Builder
	for _, name := range []string{
		"Argo CD, no rules", "Argo CD, some keys of the Secret", "Argo CD, all rules, not for syncs", "Argo CD does not install Plumbline",
		"Flux, no rules", "Flux, some rules", "Flux, a Kustomization without rules",
	} {
		s := healthy(t)
		cases[name](t, s)
		fixes := map[string]bool{}
		for _, f := range checkGitOps(s) {
			fixes[f.Fix] = true
		}
		b.WriteString("== " + name + "\n")
		for _, fix := range slices.Sorted(maps.Keys(fixes)) {
			b.WriteString(fix + "\n")
		}
	}
	golden.Check(t, filepath.Join("testdata", "gitops.fixes.txt"), b.String())
}

// TestGitOps_TheSecretIsAsTheWebhookWritesIt: rules are tried out on a sample,
// which has to have the keys that are really written.
func TestGitOps_TheSecretIsAsTheWebhookWritesIt(t *testing.T) {
	ca := newAuthority(t)
	material := certs.Material{Authorities: []*x509.Certificate{ca.certificate}, SignerKey: ca.key, Leaf: &tls.Certificate{Leaf: ca.certificate, PrivateKey: ca.key}}
	data, err := material.Data()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, key := range slices.Sorted(maps.Keys(data)) {
		want = append(want, "/data/"+key)
	}
	o := gitops.Secret(own, SecretName)
	if diff := cmp.Diff(want, o.Fields); diff != "" {
		t.Errorf("(-written +sample):\n%s", diff)
	}
}

// TestGuide_HoldsTheRulesThatAreAskedFor: who pastes from the guide passes the
// check.
func TestGuide_HoldsTheRulesThatAreAskedFor(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/install.md")
	if err != nil {
		t.Fatal(err)
	}
	s := healthy(t)
	release := gitops.PasteFlux(gitops.HelmRelease, gitops.Gaps(s.FilledObjects()))
	for tool, rules := range map[string]string{
		"Argo CD": gitops.PasteArgoCD(gitops.Gaps(s.argoCDObjects()), true),
		"Flux":    strings.Replace(release, "driftDetection:\n", "driftDetection:\n  mode: enabled\n", 1),
	} {
		if !strings.Contains(string(guide), "```yaml\n"+rules+"\n```") {
			t.Errorf("the guide lacks, for %s:\n%s", tool, rules)
		}
	}
}

// The check named two Leases of three.
func TestGitOps_AsksForTheLeaseOfAnExecutorThatIsThere(t *testing.T) {
	asks := func(s *Snapshot) bool {
		return slices.ContainsFunc(s.FilledObjects(), func(o gitops.Object) bool { return o.Kind == "Lease" && o.Name == ExecutorName })
	}
	s := healthy(t)
	if !asks(s) {
		t.Error("no rule is asked for where an executor runs")
	}
	for i := range s.Workloads.Value {
		s.Workloads.Value[i].Args = []string{"--role=assess"}
	}
	s.Workloads.Value = slices.DeleteFunc(s.Workloads.Value, func(w Workload) bool { return w.Name == ExecutorName })
	if asks(s) {
		t.Error("a rule is asked for where no executor runs")
	}
}
