// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

const (
	policyUID = "0c7f4a52-1f3e-4a0b-9d58-3f1d5d2c9a01"
	planUID   = "5d0c8f0e-7a61-4a7c-8f0d-64f1c1b7e002"
	targetUID = "9f6a1b1c-2a6d-4e39-b0a4-1c6b0a7d3003"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func digest(c string) string { return "sha256:" + strings.Repeat(c, 64) }
func pl1(c string) string    { return "pl1:" + digest(c) }

// step is a record of a correction that worked.
func step(index int32) evidence.Record {
	return evidence.Record{
		Kind: evidence.KindStep, At: noon.Add(time.Duration(index) * time.Second),
		Chain: evidence.Chain{UID: policyUID},
		Subject: evidence.Subject{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: targetUID, Hash: pl1("a"),
		},
		Drift: evidence.NewDrift([]string{"/spec/template/spec/containers/[name=app]/image"}),
		Severity: &evidence.Severity{Level: "High", Score: 60, Factors: []evidence.Factor{
			{Name: "DriftType", Score: 80, Weight: 30}, {Name: "DriftAge", Score: 30, Weight: 25},
		}},
		Policy: &evidence.Policy{Name: "production", UID: policyUID, Generation: 3, Digest: digest("b")},
		Plan:   &evidence.Plan{Namespace: "shop", Name: "production-7", UID: planUID, Digest: digest("c")},
		Step:   &evidence.Step{Index: index, Action: "Reconcile"},
		Intent: &evidence.Intent{
			Epoch: 2, UID: targetUID, ResourceVersion: "1000", PreHash: pl1("d"), DesiredHash: pl1("a"), At: noon,
		},
		Result: evidence.Result{
			State: "Verified", ResourceVersion: "1001", Hash: pl1("a"),
			Origin: evidence.OriginAPIResponse, At: noon.Add(time.Second),
		},
		Requester: "system:serviceaccount:plumbline-system:plumbline-assessor", Approver: "alice",
		InitiatedBy: evidence.InitiatedBySystem, CorrelationID: "c-1",
		Builder: evidence.Builder{Version: "v0.3.0", Digest: digest("e")},
	}
}

// assessment is a record of the assessment of that correction, which helped.
func assessment(index int32) evidence.Record {
	r := step(index)
	r.Kind, r.At = evidence.KindAssessment, noon.Add(10*time.Minute)
	r.Drift, r.Severity, r.Intent = nil, nil, nil
	r.Result = evidence.Result{State: "Completed", At: r.At}
	r.Assessment = &evidence.Assessment{
		Name: "production-7-0", UID: "2b1f5d1c-8a41-4c6b-9d1e-77a0b5c0e004", Reason: "full", Verdict: "Effective", Score: new(int32(9_580)), Formula: 1,
		Integrity: "SpecUnchanged", Components: []evidence.AssessedComponent{
			{Name: "Health", State: "Assessed", Effect: "For", Score: new(int32(9_580))}, {Name: "Alerts", State: "NotConfigured"}, {Name: "Metrics", State: "NotConfigured"},
		},
		PreHash: pl1("d"), PostHash: pl1("a"), CurrentHash: pl1("a"), WrittenAt: noon.Add(time.Second),
	}
	return r
}

// decision about the plan, which writes nothing.
func decision(kind evidence.Kind, occurrence int32) evidence.Record {
	return evidence.Record{
		Kind: kind, At: noon, Occurrence: occurrence, Chain: evidence.Chain{UID: policyUID},
		Subject: evidence.Subject{
			APIVersion: "plumbline.dev/v1alpha1", Kind: "RemediationPlan", Namespace: "shop",
			Name: "production-7", UID: planUID, Hash: digest("c"),
		},
		Policy:      &evidence.Policy{Name: "production", UID: policyUID, Digest: digest("b")},
		Plan:        &evidence.Plan{Namespace: "shop", Name: "production-7", UID: planUID, Digest: digest("c")},
		Result:      evidence.Result{Reason: "OutsideWindow"},
		InitiatedBy: "bob", Builder: evidence.Builder{Version: "v0.3.0"},
	}
}

// placed in a chain, as Append does.
func placed(r evidence.Record, sequence int64, previous string) evidence.Record {
	r.Chain = evidence.Chain{UID: r.Chain.UID, Sequence: sequence, Previous: previous}
	return r
}

// key number n, the same in every run. These keys sign nothing but tests.
func key(t testing.TB, n byte) *evidence.PrivateKey {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	k, err := evidence.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func keyring(t testing.TB, keys ...*evidence.PrivateKey) *evidence.Keyring {
	t.Helper()
	public := make([]ed25519.PublicKey, len(keys))
	for i, k := range keys {
		public[i] = k.Public()
	}
	ring, err := evidence.NewKeyring(public...)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func seal(t testing.TB, k *evidence.PrivateKey, r evidence.Record) evidence.Sealed {
	t.Helper()
	s, err := evidence.Seal(k, r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signed envelope of any payload and type.
func signed(t testing.TB, k *evidence.PrivateKey, payloadType string, payload []byte) []byte {
	t.Helper()
	sig, err := k.Sign(evidence.PreAuth(payloadType, payload))
	if err != nil {
		t.Fatal(err)
	}
	type signature struct {
		KeyID string `json:"keyid"`
		Sig   []byte `json:"sig"`
	}
	data, err := json.Marshal(struct {
		PayloadType string      `json:"payloadType"`
		Payload     []byte      `json:"payload"`
		Signatures  []signature `json:"signatures"`
	}{payloadType, payload, []signature{{k.KeyID(), sig}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}
