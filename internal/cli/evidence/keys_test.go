// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// succeeded is an archive whose key has been changed for another; the private half of the
// first one was gone, so that its end stands in the ConfigMap.
func succeeded(t *testing.T) (a *archive, ends string) {
	t.Helper()
	a = filled(t)
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	der, err := x509.MarshalPKCS8PrivateKey(private)
	clitest.Must(t, err)
	key, err := evidence.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	clitest.Must(t, err)
	public, err := evidence.PublicPEM(key.Public())
	clitest.Must(t, err)
	a.Public = string(public) + a.Public
	a.Writer.Keys, err = evidence.ParseKeyring([]byte(a.Public))
	clitest.Must(t, err)
	a.Writer.Signer = key
	tail, _, err := a.Writer.CatchUp(t.Context(), clitest.PolicyUID, a.Head, nil)
	clitest.Must(t, err)
	record := clitest.DecisionOf("", "done", clitest.Now.Add(-time.Minute))
	record.Plan = nil
	sealed, end, err := a.Writer.Succeed(t.Context(), tail, record)
	clitest.Must(t, err)
	a.Head, a.Sealed = sealed.Head(), append(a.Sealed, sealed)
	raw, err := json.Marshal([]evidence.KeyEnd{*end})
	clitest.Must(t, err)
	return a, string(raw)
}

func TestEvidenceVerify_KnowsWhereAKeyEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		ends string // in the cluster; "" for those of the rotation
		args func(t *testing.T, a *archive, ends string) []string
		code int
		want string
	}{
		"the ConfigMap says where":                {code: 0, want: "#6 to #6 signed by key"},
		"the ConfigMap says nothing":              {ends: "[]", code: 1, want: "KeyOutOfRange "},
		"the ConfigMap says what cannot be read":  {ends: "{", code: 2, want: "parsing the ends of evidence keys"},
		"keys of a file, which do not say where":  {args: func(_ *testing.T, a *archive, _ string) []string { return []string{"--key", a.keyFile()} }, code: 1, want: "KeyOutOfRange "},
		"keys of a file, and another says where":  {args: keysAndEnds, code: 0, want: "#6 to #6 signed by key"},
		"a file of ends that is not there":        {args: func(*testing.T, *archive, string) []string { return []string{"--key-ends", "/nonexistent"} }, code: 2, want: "reading the ends of keys: open /nonexistent"},
		"no cluster, and files for keys and ends": {args: offlineKeysAndEnds, code: 3, want: "#6 to #6 signed by key"},
	} {
		t.Run(name, func(t *testing.T) {
			a, ends := succeeded(t)
			objects := a.cluster()
			keys := objects[len(objects)-1].(*corev1.ConfigMap)
			if keys.Data[records.KeyEnds] = ends; tc.ends != "" {
				keys.Data[records.KeyEnds] = tc.ends
			}
			args := []string{"evidence", "verify", "--evidence", a.Dir}
			if tc.args != nil {
				args = append(args, tc.args(t, a, ends)...)
			}
			got := clitest.Cluster{Objects: objects}.Run(t, verbs, "", args...)
			if got.Code != tc.code || !strings.Contains(got.Stdout+got.Stderr, tc.want) {
				t.Errorf("got %+v, want %d and %q", got, tc.code, tc.want)
			}
		})
	}
}

func keysAndEnds(t *testing.T, a *archive, ends string) []string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key-ends.json")
	clitest.Must(t, os.WriteFile(name, []byte(ends), 0o600))
	return []string{"--key", a.keyFile(), "--key-ends", name}
}

func offlineKeysAndEnds(t *testing.T, a *archive, ends string) []string {
	return append(keysAndEnds(t, a, ends), "--offline")
}

// The review of remediation: without a ledger that knows the chain, verify said "Whole" and
// exited with 0.
func TestEvidenceVerify_AnEndThatIsNotKnownIsNotWhole(t *testing.T) {
	a := filled(t)
	clitest.Must(t, os.Remove(a.path(4)))
	objects := a.cluster()
	got := clitest.Cluster{Objects: append(objects[:2:2], objects[3:]...)}.Run(t, verbs, "", "evidence", "verify", "--evidence", a.Dir, "-o", "json")
	var report struct {
		OK       bool
		Problems []any
		OpenEnds []string
	}
	clitest.Must(t, json.Unmarshal([]byte(got.Stdout), &report))
	if got.Code != 3 || report.OK || len(report.Problems) != 0 || len(report.OpenEnds) != 1 || report.OpenEnds[0] != clitest.PolicyUID {
		t.Errorf("got %d, %+v", got.Code, report)
	}
}
