// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
	"github.com/plumbline-dev/plumbline/pkg/evidence/volume"
)

// Archive is a store with the records of one policy, and the words of the cluster
// about them.
type Archive struct {
	t *testing.T
	// Dir is that of the store; empty for one in memory.
	Dir    string
	Writer evidence.Writer
	Public string // the public key in PEM
	Head   evidence.Head
	Sealed []evidence.Sealed
}

// NewArchive returns an archive without records in a directory.
func NewArchive(t *testing.T) *Archive {
	t.Helper()
	dir := t.TempDir()
	store, err := volume.Open(dir)
	Must(t, err)
	a := newArchive(t, store)
	a.Dir = dir
	return a
}

// PackedArchive returns an archive in memory that is packed.
func PackedArchive(t *testing.T) *Archive {
	t.Helper()
	a := newArchive(t, &storetest.Memory{})
	a.Pack()
	return a
}

// newArchive has a key that is the same in every run and signs for tests alone.
func newArchive(t *testing.T, store evidence.Store) *Archive {
	t.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	Must(t, err)
	publicDER, err := x509.MarshalPKIXPublicKey(private.Public())
	Must(t, err)
	key, err := evidence.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: privateDER}))
	Must(t, err)
	ring, err := evidence.NewKeyring(key.Public())
	Must(t, err)
	return &Archive{
		t: t, Writer: evidence.Writer{Store: store, Signer: key, Keys: ring},
		Public: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER})),
	}
}

// Append appends a record.
func (a *Archive) Append(r evidence.Record) {
	a.t.Helper()
	sealed, err := a.Writer.Append(a.t.Context(), a.Head, r)
	Must(a.t, err)
	a.Head, a.Sealed = sealed.Head(), append(a.Sealed, sealed)
}

// DecisionOf returns the record of a decision about a plan.
func DecisionOf(kind evidence.Kind, name string, at time.Time) evidence.Record {
	return evidence.Record{
		Kind: kind, At: at, Chain: evidence.Chain{UID: PolicyUID},
		Subject: evidence.Subject{
			APIVersion: "plumbline.dev/v1alpha1", Kind: "RemediationPlan", Namespace: "shop", Name: name, UID: "uid-" + name, Hash: "sha256:" + strings.Repeat("c", 64),
		},
		Policy:      &evidence.Policy{Name: "production", UID: PolicyUID, Digest: "sha256:" + strings.Repeat("b", 64)},
		Plan:        &evidence.Plan{Namespace: "shop", Name: name, UID: "uid-" + name, Digest: "sha256:" + strings.Repeat("c", 64)},
		InitiatedBy: evidence.InitiatedBySystem, Builder: evidence.Builder{Version: "v0.0.0-test"},
	}
}

// StepOf returns the record of a step that wrote a version.
func StepOf(plan string, step int32, version string, at time.Time) evidence.Record {
	r := DecisionOf(evidence.KindStep, plan, at)
	r.Subject = evidence.Subject{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "uid-web", Hash: Pl1("a")}
	r.Drift = evidence.NewDrift([]string{"/spec/template/spec/containers/[name=app]/image"})
	r.Severity = &evidence.Severity{Level: "High", Score: 71}
	r.Step = &evidence.Step{Index: step, Action: "Reconcile"}
	r.Intent = &evidence.Intent{Epoch: 2, UID: "uid-web", ResourceVersion: "1000", PreHash: Pl1("d"), DesiredHash: Pl1("a"), At: at}
	r.Result = evidence.Result{State: "Verified", ResourceVersion: version, Hash: Pl1("a"), Origin: evidence.OriginAPIResponse, At: at}
	r.Requester = "alice"
	return r
}

// AssessedOf returns the record of the assessment of a step.
func AssessedOf(plan string, step int32, at time.Time) evidence.Record {
	r := DecisionOf(evidence.KindAssessment, plan, at)
	r.Subject = evidence.Subject{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "uid-of-web", Hash: Pl1("a")}
	r.Step = &evidence.Step{Index: step, Action: "Reconcile"}
	r.Result = evidence.Result{State: "Completed", At: at}
	r.Assessment = &evidence.Assessment{
		Name: fmt.Sprint(plan, "-", step), UID: "uid-of-the-assessment", Reason: "full", Verdict: "Effective", Score: new(int32(9_580)), Formula: 1, Integrity: "SpecUnchanged",
		Components: []evidence.AssessedComponent{{Name: "Health", State: "Assessed", Effect: "For", Score: new(int32(9_580))}, {Name: "Alerts", State: "NotConfigured"}},
		PreHash:    Pl1("d"), PostHash: Pl1("a"), CurrentHash: Pl1("a"), WrittenAt: at.Add(-8 * time.Minute),
	}
	return r
}

// Keep stores a body beside the chain and returns its digest.
func (a *Archive) Keep(body any) string {
	a.t.Helper()
	raw, ok := body.(string)
	if !ok {
		encoded, err := json.Marshal(body)
		Must(a.t, err)
		raw = string(encoded)
	}
	digest, err := a.Writer.Keep(a.t.Context(), PolicyUID, []byte(raw))
	Must(a.t, err)
	return digest
}

// The contents of a write, as they are stored.
const (
	BodyBefore     = `{"spec":{"replicas":7,"template":{"spec":{"containers":[{"env":[{"name":"DB_PASSWORD","value":"[redacted, ≤16 bytes]"}],"image":"evil:1","name":"app"}]}}}}`
	BodyAuthorized = `{"spec":{"replicas":7,"template":{"spec":{"containers":[{"env":[{"name":"DB_PASSWORD","value":"[redacted, ≤16 bytes]"}],"image":"shop:1","name":"app"}]}}}}`
)

// Pack appends the records of the plan "done", which has two steps, one of which failed, and all that they name.
func (a *Archive) Pack() {
	a.t.Helper()
	at := Now.Add(-time.Hour)
	plan := PlanOf("done").Spec.Plan
	plan.DriftReportID = "4b1d0f5e9c2a7d3386f0a1c5e2b49d70"
	plan.Policy.Digest = a.Keep(PolicyOf("production").Spec)
	digest := a.Keep(plan)
	before, authorized := a.Keep(BodyBefore), a.Keep(BodyAuthorized)
	origins := []evidence.Body{{Of: evidence.BodyPolicy, Digest: plan.Policy.Digest}, {Of: evidence.BodyPlan, Digest: digest}}
	tell := func(r evidence.Record, more ...evidence.Body) {
		r.Policy.Digest, r.Policy.Generation, r.Plan.Digest = plan.Policy.Digest, 3, digest
		r.DriftReportID, r.CorrelationID, r.Requester, r.Bodies = plan.DriftReportID, "c-1", "alice", slices.Concat(origins, more)
		a.Append(r)
	}
	step := func(index int32, name string, took time.Duration) evidence.Record {
		r := StepOf("done", index, "1001", at.Add(2*time.Minute))
		r.Subject.Name, r.Subject.UID, r.Intent.UID = name, "uid-of-"+name, "uid-of-"+name
		r.Step.StartedAt = r.At.Add(-took)
		return r
	}
	tell(DecisionOf(evidence.KindPlanCreated, "done", at))
	approved := DecisionOf(evidence.KindPlanApproved, "done", at.Add(time.Minute))
	approved.Approver, approved.Result.State = "carol", "Running"
	tell(approved)
	tell(step(0, "web", 40*time.Second), evidence.Body{Of: evidence.BodyBefore, Digest: before},
		evidence.Body{Of: evidence.BodyAuthorized, Digest: authorized}, evidence.Body{Of: evidence.BodyWritten, Digest: authorized})
	failed := step(1, "cart", 20*time.Second)
	failed.Result.State, failed.Result.Reason = "Failed", "Unhealthy"
	tell(failed, evidence.Body{Of: evidence.BodyWritten, Digest: authorized})
	finished := DecisionOf(evidence.KindPlanFinished, "done", at.Add(3*time.Minute))
	finished.Result = evidence.Result{State: "PartialSuccess", Reason: "PartialSuccess"}
	tell(finished)
	tell(AssessedOf("done", 0, at.Add(10*time.Minute)))
}

// PackRelease appends the record of a decision about a release, in a chain whose end no ledger knows. change alters
// the record.
func (a *Archive) PackRelease(change ...func(*evidence.Record)) {
	a.t.Helper()
	head := a.Head
	a.Head = evidence.Head{}
	defer func() { a.Head = head }()
	r := DecisionOf(evidence.KindReleaseDecision, "web", Now.Add(-time.Hour))
	r.Policy, r.Plan, r.Chain.UID = nil, nil, "uid-of-production"
	r.Subject.Kind, r.Subject.UID = "ABRelease", "uid-of-release"
	r.Delivery = &evidence.Delivery{
		Environment: "production", Release: &evidence.Release{Namespace: "shop", Name: "web", UID: "uid-of-release"},
		Decision: &evidence.Decision{Number: 1, Run: 1, Event: "canary.stage_started", From: "10", To: "25", Sequence: 1042},
	}
	for _, c := range change {
		c(&r)
	}
	a.Append(r)
}
