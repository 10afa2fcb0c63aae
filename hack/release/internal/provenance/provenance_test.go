// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

var build = Build{
	Version: "v0.1.0", Registry: "ghcr.io/me/plumbline", Commit: strings.Repeat("c", 40), Dirty: true,
	Builder: "https://example.test/builder", GoVersion: "go1.26.8", Helm: "v4.3.1",
}

func TestStatement(t *testing.T) {
	content, err := Statement(build, []Subject{{"a.tgz", strings.Repeat("a", 64)}})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"predicateType": "https://slsa.dev/provenance/v1",
		"subject":       []any{map[string]any{"name": "a.tgz", "digest": map[string]any{"sha256": strings.Repeat("a", 64)}}},
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":            buildType,
				"externalParameters":   map[string]any{"version": "v0.1.0", "registry": "ghcr.io/me/plumbline"},
				"internalParameters":   map[string]any{"go": "go1.26.8", "helm": "v4.3.1", "dirty": true},
				"resolvedDependencies": []any{map[string]any{"uri": repository, "digest": map[string]any{"gitCommit": build.Commit}}},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": build.Builder}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// verifier is the public half of a key.
type verifier struct {
	ed25519Key
	public ed25519.PublicKey
}

func (v verifier) Verify(_ context.Context, data, signature []byte) error {
	if !ed25519.Verify(v.public, data, signature) {
		return errors.New("the signature is not of this key")
	}
	return nil
}

func (v verifier) Public() crypto.PublicKey { return v.public }

func keyOf(seed string) (ed25519.PrivateKey, verifier) {
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat(seed, ed25519.SeedSize)))
	public, _ := key.Public().(ed25519.PublicKey)
	return key, verifier{ed25519Key{key}, public}
}

func TestASignatureIsOfTheStatementAndTheKey(t *testing.T) {
	key, public := keyOf("a")
	_, other := keyOf("b")
	statement, err := Statement(build, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := Sign(t.Context(), statement, key)
	if err != nil {
		t.Fatal(err)
	}
	var envelope dsse.Envelope
	if err := json.Unmarshal(signed, &envelope); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		of   verifier
		want bool
	}{{"its key", public, true}, {"another key", other, false}} {
		check, err := dsse.NewEnvelopeVerifier(tc.of)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := check.Verify(t.Context(), &envelope); (err == nil) != tc.want {
			t.Errorf("verified by %s: %v", tc.name, err)
		}
	}
	if payload, err := envelope.DecodeB64Payload(); err != nil || string(payload) != string(statement) {
		t.Errorf("the envelope holds another statement (%v)", err)
	}
}

func TestParseKey(t *testing.T) {
	key, _ := keyOf("a")
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	good := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	if got, err := ParseKey(good); err != nil || !got.Equal(key) {
		t.Errorf("a key is not read (%v)", err)
	}
	for name, text := range map[string][]byte{
		"no PEM":       []byte("key"),
		"a broken key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded[:20]}),
	} {
		if _, err := ParseKey(text); err == nil || !strings.Contains(err.Error(), "openssl genpkey") {
			t.Errorf("%s gives %v", name, err)
		}
	}
}
