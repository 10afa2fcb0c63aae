// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// auditEvent is one write by the executor, as the API server logs it.
func auditEvent(id, version string, at time.Time) string {
	line, _ := json.Marshal(map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": id, "stage": "ResponseComplete",
		"verb": "update", "user": map[string]any{"username": "system:serviceaccount:plumbline-system:plumbline-executor"},
		"objectRef":                map[string]any{"resource": "deployments", "apiGroup": "apps", "apiVersion": "v1", "namespace": "shop", "name": "web", "uid": "uid-web"},
		"responseStatus":           map[string]any{"code": 200},
		"requestObject":            map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"uid": "uid-web", "resourceVersion": "1000"}},
		"responseObject":           map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "uid-web", "resourceVersion": version}},
		"requestReceivedTimestamp": at.Format(time.RFC3339Nano), "stageTimestamp": at.Format(time.RFC3339Nano),
	})
	return string(line) + "\n"
}

func TestEvidenceVerify_JoinsTheAuditLog(t *testing.T) {
	a, at := filled(t), clitest.Now.Add(-time.Hour)
	first, second, third := auditEvent("1", "1001", at.Add(time.Minute)), auditEvent("2", "1002", at.Add(2*time.Minute)), auditEvent("3", "1003", at.Add(4*time.Minute))
	begin := auditEvent("0", "1000", at.Add(-time.Minute))
	begin = strings.Replace(begin, "plumbline-executor", "somebody", 1)
	cases := map[string]struct {
		logs []string
		args []string
		code int
		want []string
	}{
		"every write has its record": {
			logs: []string{begin + first + second, third}, want: []string{"3 with their record", "and the writes in the audit log are those of the records."},
		},
		"a write without a record": {
			logs: []string{begin + first + second + third + auditEvent("4", "1004", at.Add(5*time.Minute))}, code: 1,
			want: []string{"WriteWithoutEvidence 4: "},
		},
		"a record without a write": {
			logs: []string{begin + first + third}, code: 1, want: []string{"EvidenceWithoutWrite "},
		},
		"a log that begins too late, and what to do about it": {
			logs: []string{second + third}, code: 1, want: []string{"hint: there are records from before the log begins; --since-time 2026-03-01T11:02:00Z leaves them out"},
		},
		"a log that begins too late, and its time is told": {
			logs: []string{second + third}, args: []string{"--since-time", "2026-03-01T11:02:00Z"}, want: []string{"2 with their record", "1 outside of the time"},
		},
		"a log that ends too early, and what to do about it": {
			logs: []string{begin + first}, code: 1, want: []string{"hint: there are records from after the log ends; --until-time 2026-03-01T11:01:00Z leaves them out"},
		},
		"the same as an age": {
			logs: []string{begin + first + second + third}, args: []string{"--since", "57m"}, want: []string{"3 with their record"},
		},
		"the writes of somebody else are not looked for": {
			logs: []string{begin + first + second + third}, args: []string{"--writer", "system:serviceaccount:x:y"}, code: 1, want: []string{"EvidenceWithoutWrite "},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"evidence", "verify", "--evidence", a.Dir}, tc.args...)
			for i, content := range tc.logs {
				args = append(args, "--audit-log", logFile(t, content, i%2 == 1))
			}
			got := clitest.Cluster{Objects: a.cluster()}.Run(t, verbs, "", args...)
			if got.Code != tc.code {
				t.Errorf("exit code %d, want %d", got.Code, tc.code)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Stdout, want) {
					t.Errorf("%q is missing in\n%s%s", want, got.Stdout, got.Stderr)
				}
			}
		})
	}
	t.Run("as the page shows it", func(t *testing.T) {
		got := clitest.Cluster{Objects: a.cluster()}.Run(t, verbs, "", "evidence", "verify", "--evidence", a.Dir, "--audit-log", logFile(t, begin+first+second+third, false))
		if got.Code != 0 {
			t.Errorf("exit code %d, %s", got.Code, got.Stderr)
		}
		golden.Check(t, filepath.Join("testdata", "verify-audit.txt"), a.unplaced(got.Stdout))
	})
	t.Run("as a program reads it", func(t *testing.T) {
		got := clitest.Cluster{Objects: a.cluster()}.Run(t, verbs, "", "evidence", "verify", "--evidence", a.Dir, "-o", "json", "--audit-log", logFile(t, begin+first+second+third, true))
		var report struct {
			OK    bool
			Audit struct{ Matched int }
		}
		clitest.Must(t, json.Unmarshal([]byte(got.Stdout), &report))
		if !report.OK || report.Audit.Matched != 3 || got.Code != 0 {
			t.Errorf("got %d, %s", got.Code, got.Stdout)
		}
	})
}

// logFile writes an audit log, compressed as a rotated one may be.
func logFile(t *testing.T, content string, compressed bool) string {
	t.Helper()
	var b bytes.Buffer
	if compressed {
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(content))
		clitest.Must(t, err)
		clitest.Must(t, w.Close())
	} else {
		b.WriteString(content)
	}
	name := filepath.Join(t.TempDir(), fmt.Sprintf("audit-%v.log", compressed))
	clitest.Must(t, os.WriteFile(name, b.Bytes(), 0o600))
	return name
}

// TestEvidenceVerify_JoinsTheWritesOfReleaseWorks: their records are in the chain of an Environment.
func TestEvidenceVerify_JoinsTheWritesOfReleaseWorks(t *testing.T) {
	a, at := releaseArchive(t), clitest.Now.Add(-time.Hour)
	written := strings.Replace(auditEvent("1", "1001", at), `"resourceVersion":"1000"`, `"labels":{"plumbline.dev/release-work":"uid-of-work"},"resourceVersion":"1000"`, 1)
	objects := a.cluster(func(l *v1alpha1.RemediationLedger) {
		l.Status.Chains = []v1alpha1.EvidenceChain{{PolicyUID: "uid-of-production", Sequence: a.Head.Sequence, Digest: a.Head.Digest}}
	})[2:]
	got := clitest.Cluster{Objects: objects}.Run(t, verbs, "", "evidence", "verify", "--evidence", a.Dir, "--audit-log", logFile(t, written, false))
	for _, want := range []string{"releases of production (uid-of-production)  3 good records", "1 with their record", "and the writes in the audit log are those of the records."} {
		if got.Code != 0 || !strings.Contains(got.Stdout, want) {
			t.Errorf("exit code %d, %q is missing in\n%s%s", got.Code, want, got.Stdout, got.Stderr)
		}
	}
	again := strings.Replace(strings.Replace(written, `"auditID":"1"`, `"auditID":"2"`, 1), "1001", "1002", 1)
	got = clitest.Cluster{Objects: objects}.Run(t, verbs, "", "evidence", "verify", "--evidence", a.Dir, "--audit-log", logFile(t, written+again, false))
	if got.Code != 1 || !strings.Contains(got.Stdout, "WriteWithoutEvidence 2: ") || !strings.Contains(got.Stdout, "ReleaseWork with uid uid-of-work") {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	got = clitest.Cluster{Objects: objects}.Run(t, verbs, "", "evidence", "verify", "--evidence", a.Dir, "--audit-log", logFile(t, strings.Replace(auditEvent("3", "7", at), "plumbline-executor", "somebody", 1), false))
	if got.Code != 1 || !strings.Contains(got.Stdout, "EvidenceWithoutWrite") {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}
