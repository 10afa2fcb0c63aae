// SPDX-License-Identifier: Apache-2.0

package history

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestHistory_Golden(t *testing.T) {
	web := clitest.BaselineOf("web")
	objects := []client.Object{web, clitest.RevisionOf(t, web, 1, `{"spec":{"replicas":1}}`), clitest.RevisionOf(t, web, 3, `{"spec":{"replicas":3,"x":"<b>"}}`)}
	cases := map[string][]string{
		"table": {"history", "deployment/web"},
		"wide":  {"history", "deployment/web", "-o", "wide"},
		"json":  {"history", "deployment/web", "-o", "json"},
		"body":  {"history", "deployment/web", "--revision", "3"},
		"bodyj": {"history", "deployment/web", "--revision", "3", "-o", "json"},
		"diff":  {"history", "deployment/web", "--diff", "1..3"},
		"diffj": {"history", "deployment/web", "--diff", "1..3", "-o", "json"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: objects}.Run(t, verbs, "", args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
	none := clitest.Cluster{Objects: []client.Object{clitest.BaselineOf("web", func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil })}}.Run(t, verbs, "", "history", "deployment/web")
	if none.Code != 0 || none.Stdout != "" || none.Stderr != "No authorized state of deployment.apps/web found: no trusted writer has created it.\n" {
		t.Errorf("history of what was never authorized gave %+v", none)
	}
}

// A state that a run authorized names the user who asked, and the run.
func TestHistory_NamesTheRunThatAuthorized(t *testing.T) {
	web := clitest.BaselineOf("web")
	revision := clitest.RevisionOf(t, web, 3, `{"spec":{"replicas":3}}`)
	revision.Spec.By, revision.Spec.Release = "ada", &v1alpha1.AuthorizedRelease{Name: "pay", Run: 7, WorkName: "pay-7-4"}
	objects := []client.Object{web, revision}
	if got := (clitest.Cluster{Objects: objects}).Run(t, verbs, "", "history", "deployment/web"); !strings.Contains(got.Stdout, "ada by release pay, run 7") {
		t.Errorf("it says:\n%s%s", got.Stdout, got.Stderr)
	}
	if got := (clitest.Cluster{Objects: objects}).Run(t, verbs, "", "history", "deployment/web", "-o", "json"); !strings.Contains(got.Stdout, `"workName": "pay-7-4"`) {
		t.Errorf("JSON lacks the run:\n%s", got.Stdout)
	}
}
