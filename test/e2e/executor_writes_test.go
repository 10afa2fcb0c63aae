// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// This file's name puts the demo after the tests of the executor, whose writes are looked
// at with its own, and before what changes the values of the release: the demo would
// install its own again.

// TestTheDemoTellsItsStory once, and with PLUMBLINE_LONG=1 again over what the first
// time has left.
func TestTheDemoTellsItsStory(t *testing.T) {
	rounds := []string{"first"}
	if os.Getenv("PLUMBLINE_LONG") == "1" {
		rounds = append(rounds, "second")
	}
	for _, round := range rounds {
		t.Run(round, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "run", "./hack/demo", "--name", clusterName)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The demo has verified its own evidence; this is that of everything that was put
// back on this cluster, the tests of the executor included.
func TestTheWritesOfTheExecutorAreThoseOfItsRecords(t *testing.T) {
	logs, err := filepath.Glob(filepath.Join(filepath.Dir(cluster.Kubeconfig), "..", "log", "audit*.jsonl*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("the API server's audit log: %q, %v", logs, err)
	}
	report := verifyEvidence(t, logs...)
	if !report.OK || len(report.Problems) > 0 || report.Audit.Matched == 0 {
		t.Fatalf("with the audit log: %+v", report)
	}
	chains.Lock()
	defer chains.Unlock()
	for namespace, policy := range chains.of {
		if !slices.ContainsFunc(report.Chains, func(c evidence.ChainReport) bool { return c.UID == policy && c.Records > 0 }) {
			t.Errorf("the policy of %s has no chain", namespace)
		}
	}
	t.Logf("%d chains, %d records, %d writes", len(report.Chains), report.Records, report.Audit.Matched)

	// The same must not be said of another log: one write is left out of it, or one
	// more is in it.
	lines, write := auditLines(t, logs)
	for name, tc := range map[string]struct {
		lines []string
		want  evidence.ProblemKind
	}{
		"a write that never was": {slices.Delete(slices.Clone(lines), write, write+1), evidence.ProblemEvidenceWithoutWrite},
		"a write without record": {append(slices.Clone(lines), secretly(t, lines[write])), evidence.ProblemWriteWithoutEvidence},
	} {
		t.Run(name+" is found", func(t *testing.T) {
			other := filepath.Join(t.TempDir(), "audit.jsonl")
			if err := os.WriteFile(other, []byte(strings.Join(tc.lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			report := verifyEvidence(t, other)
			if report.OK || len(report.Problems) != 1 || report.Problems[0].Kind != tc.want {
				t.Errorf("problems %+v, want one %s", report.Problems, tc.want)
			}
		})
	}
}

// evidenceReport is what the plugin says of all evidence.
type evidenceReport struct {
	OK       bool                   `json:"ok"`
	Records  int                    `json:"records"`
	Chains   []evidence.ChainReport `json:"chains"`
	Problems []evidence.Problem     `json:"problems"`
	Audit    struct {
		Matched int `json:"matched"`
	} `json:"audit"`
}

func verifyEvidence(t *testing.T, logs ...string) (report evidenceReport) {
	t.Helper()
	args := []string{"kubectl", "plumbline", "evidence", "verify", "-o", "json"}
	for _, log := range logs {
		args = append(args, "--audit-log", log)
	}
	result, err := cluster.Run(t.Context(), args)
	// With problems it exits with 1, and says which.
	if exit, exited := errors.AsType[*exec.ExitError](err); err != nil && (!exited || exit.ExitCode() != 1) {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(result.Stdout), &report); err != nil {
		t.Fatalf("reading the report: %v\n%s", err, result.Output())
	}
	return report
}

// auditLines reads an audit log, and finds the last write of the executor in it.
func auditLines(t *testing.T, logs []string) (lines []string, write int) {
	t.Helper()
	for _, log := range logs {
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimRight(string(content), "\n"), "\n")...)
	}
	for write = len(lines) - 1; write >= 0; write-- {
		if strings.Contains(lines[write], executorUser) && isUpdate(t, lines[write]) {
			return lines, write
		}
	}
	t.Fatal("the audit log has no write of the executor")
	return nil, 0
}

const executorUser = "system:serviceaccount:plumbline-system:plumbline-executor"

// isUpdate says whether a line of the audit log is an update of a Deployment by
// the executor that was stored.
func isUpdate(t *testing.T, line string) bool {
	t.Helper()
	var event struct {
		Verb       string `json:"verb"`
		RequestURI string `json:"requestURI"`
		User       struct {
			Username string `json:"username"`
		} `json:"user"`
		ObjectRef struct {
			Resource string `json:"resource"`
		} `json:"objectRef"`
		ResponseStatus struct {
			Code int `json:"code"`
		} `json:"responseStatus"`
	}
	if err := json.Unmarshal([]byte(line), &event); err != nil {
		t.Fatal(err)
	}
	return event.Verb == "update" && event.User.Username == executorUser && event.ObjectRef.Resource == "deployments" &&
		event.ResponseStatus.Code == 200 && !strings.Contains(event.RequestURI, "dryRun")
}

// secretly is the same write once more, to another version, without the marks of
// a step.
func secretly(t *testing.T, line string) string {
	t.Helper()
	var event map[string]any
	if err := json.Unmarshal([]byte(line), &event); err != nil {
		t.Fatal(err)
	}
	event["auditID"] = "another"
	for _, body := range []string{"requestObject", "responseObject"} {
		metadata := event[body].(map[string]any)["metadata"].(map[string]any)
		metadata["labels"] = map[string]any{}
		if body == "responseObject" {
			metadata["resourceVersion"] = "1"
		}
	}
	changed, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return string(changed)
}
