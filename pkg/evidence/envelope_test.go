// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	attestation "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// TestSeal_Golden holds the bytes: what was written once must stay readable, and
// a retry must write the same.
func TestSeal_Golden(t *testing.T) {
	first := seal(t, key(t, 1), placed(decision(evidence.KindPlanDeferred, 0), 1, ""))
	golden.Check(t, filepath.Join("testdata", "deferred.json"), first.Envelope)
	golden.Check(t, filepath.Join("testdata", "deferred.statement.json"), first.Payload)
	second := seal(t, key(t, 1), placed(step(0), 2, first.Digest))
	golden.Check(t, filepath.Join("testdata", "step.json"), second.Envelope)
	golden.Check(t, filepath.Join("testdata", "step.statement.json"), second.Payload)
	if len(second.Payload) > 4<<10 {
		t.Errorf("a usual record has %d bytes, want at most 4 KiB", len(second.Payload))
	}
}

func TestOpen_GivesTheRecordBack(t *testing.T) {
	absent := step(3)
	absent.Subject.Hash, absent.Subject.Namespace = "absent", ""
	absent.Subject.Name = "odd#name:<&>"
	for name, r := range map[string]evidence.Record{
		"a step":                     step(0),
		"a decision":                 decision(evidence.KindPlanCanceled, 2),
		"an object that is gone":     absent,
		"a plan without a deadline":  decision(evidence.KindPlanCreated, 0),
		"a kind of the core group":   inCore(step(1)),
		"a record without any drift": withoutDrift(step(1)),
	} {
		t.Run(name, func(t *testing.T) {
			sealed := seal(t, key(t, 1), placed(r, 7, digest("f")))
			opened, err := evidence.Open(keyring(t, key(t, 2), key(t, 1)), sealed.Envelope)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sealed, opened); diff != "" {
				t.Errorf("(-sealed +opened):\n%s", diff)
			}
		})
	}
}

func inCore(r evidence.Record) evidence.Record {
	r.Subject.APIVersion, r.Subject.Kind = "v1", "ConfigMap"
	return r
}

func withoutDrift(r evidence.Record) evidence.Record {
	r.Drift, r.Severity = nil, nil
	return r
}

// TestPreAuth_Specification is the test vector of the DSSE specification.
func TestPreAuth_Specification(t *testing.T) {
	got := string(evidence.PreAuth("http://example.com/HelloWorld", []byte("hello world")))
	if want := "DSSEv1 29 http://example.com/HelloWorld 11 hello world"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// reference verifier of go-securesystemslib.
type reference struct{ k *evidence.PrivateKey }

func (r reference) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(r.k.Public(), data, sig) {
		return errors.New("not signed by this key")
	}
	return nil
}
func (r reference) KeyID() (string, error)   { return r.k.KeyID(), nil }
func (r reference) Public() crypto.PublicKey { return r.k.Public() }

// TestSeal_ReferenceLibrariesAgree: the DSSE library of its authors verifies our
// envelope, and in-toto's own types read the statement.
func TestSeal_ReferenceLibrariesAgree(t *testing.T) {
	k := key(t, 1)
	sealed := seal(t, k, placed(step(0), 1, ""))
	var e dsse.Envelope
	if err := json.Unmarshal(sealed.Envelope, &e); err != nil {
		t.Fatal(err)
	}
	verifier, err := dsse.NewEnvelopeVerifier(reference{k})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verifier.Verify(t.Context(), &e); err != nil {
		t.Errorf("go-securesystemslib: %v", err)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	var s attestation.Statement
	if err := protojson.Unmarshal(payload, &s); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Errorf("in-toto attestation: %v", err)
	}
	if got, want := s.GetSubject()[0].GetName(), "apps/v1/Deployment/shop/web#"+targetUID; got != want {
		t.Errorf("subject: got %s, want %s", got, want)
	}
}

func faultOf(err error) evidence.Fault {
	var e *evidence.EnvelopeError
	if !errors.As(err, &e) {
		return ""
	}
	return e.Fault
}

func TestOpen_Tampered(t *testing.T) {
	k, other := key(t, 1), key(t, 2)
	good := seal(t, k, placed(step(0), 1, ""))
	text := string(good.Envelope)
	replaced := func(from, to string) string {
		t.Helper()
		if !strings.Contains(text, from) {
			t.Fatalf("%q is not in the envelope", from)
		}
		return strings.Replace(text, from, to, 1)
	}
	statement := func(from, to string) []byte {
		return []byte(strings.Replace(string(good.Payload), from, to, 1))
	}
	cases := map[string]struct {
		data []byte
		want evidence.Fault
	}{
		"cut off in the middle":             {good.Envelope[:len(text)/2], evidence.FaultMalformed},
		"cut off by a byte":                 {good.Envelope[:len(text)-1], evidence.FaultMalformed},
		"empty":                             {nil, evidence.FaultMalformed},
		"a newline more":                    {[]byte(text + "\n"), evidence.FaultMalformed},
		"twice":                             {[]byte(text + text), evidence.FaultMalformed},
		"an unknown field":                  {[]byte(replaced(`{"payloadType"`, `{"x":1,"payloadType"`)), evidence.FaultMalformed},
		"a field twice":                     {[]byte(replaced(`{"payloadType"`, `{"payloadType":"x","payloadType"`)), evidence.FaultMalformed},
		"a field in another case":           {[]byte(replaced(`"payloadType"`, `"PayloadType"`)), evidence.FaultMalformed},
		"another type of payload":           {[]byte(replaced(evidence.PayloadType, "application/json")), evidence.FaultBadSignature},
		"no signature":                      {withSignatures(t, good.Envelope), evidence.FaultUnknownKey},
		"an empty key id":                   {[]byte(replaced(k.KeyID(), "")), evidence.FaultUnknownKey},
		"the key id of somebody else":       {[]byte(replaced(k.KeyID(), other.KeyID())), evidence.FaultUnknownKey},
		"signed by a key that is not known": {seal(t, other, placed(step(0), 1, "")).Envelope, evidence.FaultUnknownKey},
		"the signature of another record":   {withSignatures(t, good.Envelope, seal(t, k, placed(step(1), 1, "")).Envelope), evidence.FaultBadSignature},
		"too long":                          {bytes.Repeat([]byte(" "), evidence.MaxEnvelope+1), evidence.FaultMalformed},

		// Properly signed with the right key, for something else.
		"signed as another type of payload": {signed(t, k, "application/vnd.other+json", good.Payload), evidence.FaultWrongType},
		"another predicate":                 {signed(t, k, evidence.PayloadType, statement("remediation/v1", "promotion/v1")), evidence.FaultWrongType},
		"the next version of the predicate": {signed(t, k, evidence.PayloadType, statement("remediation/v1", "remediation/v2")), evidence.FaultWrongType},
		"another statement":                 {signed(t, k, evidence.PayloadType, statement("Statement/v1", "Statement/v0.1")), evidence.FaultWrongType},
		"no statement at all":               {signed(t, k, evidence.PayloadType, []byte(`"hello"`)), evidence.FaultMalformed},
		"no JSON":                           {signed(t, k, evidence.PayloadType, []byte(`{`)), evidence.FaultMalformed},
		"an unknown kind":                   {signed(t, k, evidence.PayloadType, statement(`"Step"`, `"Leap"`)), evidence.FaultMalformed},
		"no place in a chain":               {signed(t, k, evidence.PayloadType, statement(`"sequence":1`, `"sequence":0`)), evidence.FaultMalformed},
		"a predicate that is no record":     {signed(t, k, evidence.PayloadType, statement(`"predicate":{`, `"predicate":7,"x":{`)), evidence.FaultMalformed},
		"no subject":                        {signed(t, k, evidence.PayloadType, statement(`"subject":[`, `"subject":[],"x":[`)), evidence.FaultMalformed},
		"a subject without a uid":           {signed(t, k, evidence.PayloadType, statement("web#", "web")), evidence.FaultMalformed},
		"a subject without a kind":          {signed(t, k, evidence.PayloadType, statement("apps/v1/Deployment/", "apps/")), evidence.FaultMalformed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := evidence.Open(keyring(t, k), tc.data)
			if got := faultOf(err); got != tc.want {
				t.Errorf("got %q (%v), want %q", got, err, tc.want)
			}
			if err != nil && s.Digest != "" {
				t.Error("something was given all the same")
			}
		})
	}
}

// withSignatures keeps an envelope's payload and takes the signatures of others.
func withSignatures(t *testing.T, data []byte, from ...[]byte) []byte {
	t.Helper()
	type envelope struct {
		PayloadType string            `json:"payloadType"`
		Payload     string            `json:"payload"`
		Signatures  []json.RawMessage `json:"signatures"`
	}
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	e.Signatures = []json.RawMessage{}
	for _, other := range from {
		var o envelope
		if err := json.Unmarshal(other, &o); err != nil {
			t.Fatal(err)
		}
		e.Signatures = append(e.Signatures, o.Signatures...)
	}
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOpen_SeveralSignatures: one known key that signed is enough.
func TestOpen_SeveralSignatures(t *testing.T) {
	k, other := key(t, 1), key(t, 2)
	ours := seal(t, k, placed(step(0), 1, ""))
	theirs := seal(t, other, placed(step(0), 1, ""))
	both := withSignatures(t, ours.Envelope, theirs.Envelope, ours.Envelope)
	for i, ring := range []*evidence.Keyring{keyring(t, k), keyring(t, other), keyring(t, k, other)} {
		if _, err := evidence.Open(ring, both); err != nil {
			t.Errorf("keyring %d: %v", i, err)
		}
	}
	if _, err := evidence.Open(keyring(t, key(t, 3)), both); faultOf(err) != evidence.FaultUnknownKey {
		t.Errorf("a third key: got %v", err)
	}
}

func slicesConcat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// FuzzOpen believes nothing but what was signed: the three records that this key
// has signed anywhere. Others may add signatures of their own to them.
func FuzzOpen(f *testing.F) {
	k := key(f, 1)
	good := seal(f, k, placed(step(0), 1, ""))
	f.Add(good.Envelope)
	f.Add(signed(f, k, evidence.PayloadType, []byte(`{}`)))
	f.Add([]byte(`{"payloadType":"","payload":null,"signatures":null}`))
	ring := keyring(f, k)
	genuine := map[string]bool{good.Digest: true}
	for _, name := range []string{"deferred.statement.json", "step.statement.json"} {
		payload, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		genuine[evidence.Digest(payload)] = true
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := evidence.Open(ring, data)
		if err == nil && !genuine[s.Digest] {
			t.Errorf("%q was believed", data)
		}
		if err != nil && faultOf(err) == "" {
			t.Errorf("an error without a fault: %v", err)
		}
		// The payload by itself: what would be read if it had been signed.
		if s, err := evidence.Open(ring, signed(t, k, evidence.PayloadType, data)); err == nil {
			if _, err := evidence.Seal(k, s.Record); err != nil {
				t.Errorf("%q is read and cannot be written: %v", data, err)
			}
		}
	})
}
