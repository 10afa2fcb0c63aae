// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestBlame_BreakGlass(t *testing.T) {
	because := func(f v1alpha1.Finding, reason string) v1alpha1.Finding {
		f.Actor.BreakGlassReason = reason
		return f
	}
	b := clitest.BaselineOf("web", clitest.Drifted(
		because(clitest.Found("/spec/replicas", "1", "5", "alice", time.Hour), "incident 7"),
		because(clitest.Found("/spec/paused", "", "true", "alice", time.Hour), "incident 7"),
		because(clitest.Found("/spec/minReadySeconds", "", "1", "bob", time.Hour), "two\nlines \x1b[31mand color"),
		clitest.Found("/spec/template", "", "{}", "carol", time.Hour),
	))
	got := clitest.Cluster{Objects: []client.Object{b}}.Run(t, verbs, "", "blame", "deployment/web")
	if got.Code != 0 {
		t.Fatalf("exit %d: %s", got.Code, got.Stderr)
	}
	if n := strings.Count(got.Stdout, "Break-glass: alice, \"incident 7\"\n"); n != 1 {
		t.Errorf("alice's reason stands there %d times, want once for one write:\n%s", n, got.Stdout)
	}
	if !strings.Contains(got.Stdout, "Break-glass: bob, \"two") || strings.ContainsAny(got.Stdout, "\x1b") || strings.Contains(got.Stdout, "\nlines") {
		t.Errorf("a reason moves the terminal:\n%q", got.Stdout)
	}
	if strings.Contains(got.Stdout, "Break-glass: carol") {
		t.Errorf("carol gave no reason:\n%s", got.Stdout)
	}
	structured := clitest.Cluster{Objects: []client.Object{b}}.Run(t, verbs, "", "blame", "deployment/web", "-o", "json")
	if !strings.Contains(structured.Stdout, `"breakGlassReason": "incident 7"`) {
		t.Errorf("JSON lacks the reason:\n%s", structured.Stdout)
	}
}

func TestBlame_Golden(t *testing.T) {
	cases := map[string][]string{
		"blame":     {"blame", "deployment/web"},
		"blamewide": {"blame", "deployment", "fought", "-o", "wide"},
		"blamejson": {"blame", "deployment/web", "-o", "json"},
		"blamenew":  {"blame", "deployment/new"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: clitest.Fleet()}.Run(t, verbs, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
}

// A state that a run authorized names the user who asked, and the run.
func TestBlame_NamesTheRunThatAuthorized(t *testing.T) {
	b := clitest.BaselineOf("web", func(b *v1alpha1.Baseline) {
		b.Spec.Authorized.By, b.Spec.Authorized.Release = "ada", &v1alpha1.AuthorizedRelease{Name: "pay", Run: 7, WorkName: "pay-7-4"}
	})
	got := clitest.Cluster{Objects: []client.Object{b}}.Run(t, verbs, "", "blame", "deployment/web")
	if !strings.Contains(got.Stdout, "by ada by release pay, run 7, 120m ago") {
		t.Errorf("it says:\n%s%s", got.Stdout, got.Stderr)
	}
	structured := clitest.Cluster{Objects: []client.Object{b}}.Run(t, verbs, "", "blame", "deployment/web", "-o", "json")
	if !strings.Contains(structured.Stdout, `"workName": "pay-7-4"`) {
		t.Errorf("JSON lacks the run:\n%s", structured.Stdout)
	}
}
