// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

var page = filepath.Join("..", "..", "docs", "reference", "evidence.md")

// between gives what stands between a pair of markers, and what is around it.
func between(t *testing.T, text, name string) (before, middle, after string) {
	t.Helper()
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, ok := strings.Cut(text, begin)
	middle, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("the page has no pair of markers %q, %q", begin, end)
	}
	return before + begin, middle, end + after
}

// exampleStep is a step with the fields that an executor fills in.
func exampleStep() evidence.Record {
	r := step(0)
	r.Step.StartedAt = noon.Add(-time.Second)
	r.DriftReportID = "4b1d0f5e9c2a7d3386f0a1c5e2b49d70"
	r.Bodies = []evidence.Body{
		{Of: evidence.BodyPolicy, Digest: r.Policy.Digest}, {Of: evidence.BodyPlan, Digest: r.Plan.Digest},
		{Of: evidence.BodyBefore, Digest: digest("1")}, {Of: evidence.BodyAuthorized, Digest: digest("2")}, {Of: evidence.BodyWritten, Digest: digest("2")},
	}
	return r
}

// TestReferencePage_Example: the example is the record of the golden file.
func TestReferencePage_Example(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	sealed := seal(t, key(t, 1), placed(exampleStep(), 2, digest("f")))
	var example bytes.Buffer
	if err := json.Indent(&example, sealed.Payload, "", "  "); err != nil {
		t.Fatal(err)
	}
	before, _, after := between(t, string(text), "example")
	golden.Check(t, page, before+"```json\n"+example.String()+"\n```\n"+after)
}

// TestReferencePage_Commands runs the page's commands on a record: openssl and
// jq agree about signature, key id, digest and types.
func TestReferencePage_Commands(t *testing.T) {
	for _, tool := range []string{"openssl", "jq", "sha256sum", "base64", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("the commands of the page cannot be tried: %v (make preflight installs the tools; on Debian: sudo apt-get install --no-install-recommends jq openssl)", err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, commands, _ := between(t, string(text), "commands")
	commands = strings.TrimSuffix(strings.TrimPrefix(commands, "```sh\n"), "```\n")
	k := key(t, 1)
	sealed := seal(t, k, placed(step(0), 2, digest("f")))
	out := runCommands(t, commands, k, sealed.Envelope)
	for _, want := range []string{
		"Signature Verified Successfully", k.KeyID(), strings.TrimPrefix(sealed.Digest, "sha256:"),
		evidence.StatementType, evidence.PredicateType,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the commands do not say %q:\n%s", want, out)
		}
	}
	altered := bytes.Replace(sealed.Envelope, []byte(`"sig":"`), []byte(`"sig":"AAAA`), 1)
	if out := runCommands(t, commands, k, altered); strings.Contains(out, "Verified Successfully") {
		t.Errorf("an altered signature passes:\n%s", out)
	}
}

func runCommands(t *testing.T, commands string, k *evidence.PrivateKey, record []byte) string {
	t.Helper()
	dir := t.TempDir()
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for name, data := range map[string][]byte{"record.json": record, "public.pem": public} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := child.Bind(exec.CommandContext(t.Context(), "bash", "-c", commands))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	t.Logf("%v\n%s", err, out)
	return string(out)
}
