// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// keep stores a body beside the chain and returns its digest.
func (a *archive) keep(body any) string {
	a.t.Helper()
	raw, ok := body.(string)
	if !ok {
		encoded, err := json.Marshal(body)
		clitest.Must(a.t, err)
		raw = string(encoded)
	}
	digest, err := a.writer.Keep(a.t.Context(), clitest.PolicyUID, []byte(raw))
	clitest.Must(a.t, err)
	return digest
}

// The contents of a write, as they are stored.
const (
	bodyBefore     = `{"spec":{"replicas":7,"template":{"spec":{"containers":[{"env":[{"name":"DB_PASSWORD","value":"[redacted, ≤16 bytes]"}],"image":"evil:1","name":"app"}]}}}}`
	bodyAuthorized = `{"spec":{"replicas":7,"template":{"spec":{"containers":[{"env":[{"name":"DB_PASSWORD","value":"[redacted, ≤16 bytes]"}],"image":"shop:1","name":"app"}]}}}}`
)

// packed has a plan with two steps, one of which failed, and all that it speaks of.
func packed(t *testing.T) *archive {
	t.Helper()
	a, at := newArchive(t), clitest.Now.Add(-time.Hour)
	plan := clitest.PlanOf("done").Spec.Plan
	plan.DriftReportID = "4b1d0f5e9c2a7d3386f0a1c5e2b49d70"
	plan.Policy.Digest = a.keep(clitest.PolicyOf("production").Spec)
	digest := a.keep(plan)
	before, authorized := a.keep(bodyBefore), a.keep(bodyAuthorized)
	origins := []evidence.Body{{Of: evidence.BodyPolicy, Digest: plan.Policy.Digest}, {Of: evidence.BodyPlan, Digest: digest}}
	tell := func(r evidence.Record, more ...evidence.Body) {
		r.Policy.Digest, r.Policy.Generation, r.Plan.Digest = plan.Policy.Digest, 3, digest
		r.DriftReportID, r.CorrelationID, r.Requester, r.Bodies = plan.DriftReportID, "c-1", "alice", slices.Concat(origins, more)
		a.append(r)
	}
	step := func(index int32, name string, took time.Duration) evidence.Record {
		r := corrected("done", index, "1001", at.Add(2*time.Minute))
		r.Subject.Name, r.Subject.UID, r.Intent.UID = name, "uid-of-"+name, "uid-of-"+name
		r.Step.StartedAt = r.At.Add(-took)
		return r
	}
	tell(decided(evidence.KindPlanCreated, "done", at))
	approved := decided(evidence.KindPlanApproved, "done", at.Add(time.Minute))
	approved.Approver, approved.Result.State = "carol", "Running"
	tell(approved)
	tell(step(0, "web", 40*time.Second), evidence.Body{Of: evidence.BodyBefore, Digest: before},
		evidence.Body{Of: evidence.BodyAuthorized, Digest: authorized}, evidence.Body{Of: evidence.BodyWritten, Digest: authorized})
	failed := step(1, "cart", 20*time.Second)
	failed.Result.State, failed.Result.Reason = "Failed", "Unhealthy"
	tell(failed, evidence.Body{Of: evidence.BodyWritten, Digest: authorized})
	finished := decided(evidence.KindPlanFinished, "done", at.Add(3*time.Minute))
	finished.Result = evidence.Result{State: "PartialSuccess", Reason: "PartialSuccess"}
	tell(finished)
	tell(assessed("done", 0, at.Add(10*time.Minute)))
	return a
}

// Section 6 of the review of remediation: evidence get prints what seed 000 wants of a packet.
func TestEvidencePacket_Golden(t *testing.T) {
	a := packed(t)
	for name, args := range map[string][]string{
		"packet":      {"done"},
		"packet-wide": {"done", "-o", "wide"},
		"packet-json": {"done", "-o", "json"},
		"packet-step": {"done", "--step", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: filled(t).cluster()}.Run(t, verbs, "", append([]string{"evidence", "get", "--evidence", a.dir}, args...)...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
}

func TestEvidencePacket_TellsWhichBodyIsNotBelieved(t *testing.T) {
	digest := evidence.Digest([]byte(bodyBefore))
	for name, test := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"one that was changed": {
			func(t *testing.T, path string) { clitest.Must(t, os.WriteFile(path, []byte(`{"spec":{}}`), 0o600)) },
			"digest mismatch: the content has the digest " + evidence.Digest([]byte(`{"spec":{}}`)),
		},
		"one that is gone": {func(t *testing.T, path string) { clitest.Must(t, os.Remove(path)) }, "the store lacks the body that the records name"},
	} {
		t.Run(name, func(t *testing.T) {
			a := packed(t)
			path := filepath.Join(a.dir, evidence.BodyName(clitest.PolicyUID, digest))
			clitest.Must(t, os.Chmod(path, 0o600))
			test.spoil(t, path)
			run := func(args ...string) clitest.Answer {
				return clitest.Cluster{Objects: filled(t).cluster()}.Run(t, verbs, "", append([]string{"evidence", "get", "done", "--evidence", a.dir}, args...)...)
			}
			got := run()
			if want := "Before of step 0  " + actions.ShortenHash(digest) + "  " + test.want + "\n"; got.Code != 0 || !strings.Contains(got.Stdout, want) {
				t.Errorf("%d: %q is missing in\n%s", got.Code, want, got.Stdout)
			}
			if want := "Warning: the store has 1 problem; kubectl plumbline evidence verify tells which\n"; got.Stderr != want {
				t.Errorf("got %q, want %q", got.Stderr, want)
			}
			if got := run("-o", "json"); !strings.Contains(got.Stdout, test.want) || strings.Contains(got.Stdout, "evil:1") {
				t.Errorf("got\n%s", got.Stdout)
			}
		})
	}
}

// Two plans may have one name, one after the other: a packet is about one of them.
func TestEvidencePacket_IsAboutOnePlan(t *testing.T) {
	a := packed(t)
	later := decided(evidence.KindPlanCreated, "done", clitest.Now)
	later.Plan.UID, later.Subject.UID = "uid-of-the-second", "uid-of-the-second"
	a.append(later)
	got := clitest.Cluster{Objects: filled(t).cluster()}.Run(t, verbs, "", "evidence", "get", "done", "--evidence", a.dir, "-o", "json")
	var packet struct {
		EvidencePacketID string
		Plan             struct{ UID string }
		Records          []any
	}
	clitest.Must(t, json.Unmarshal([]byte(got.Stdout), &packet))
	if packet.EvidencePacketID != clitest.PolicyUID+".7-7" || packet.Plan.UID != "uid-of-the-second" || len(packet.Records) != 1 {
		t.Errorf("the packet is %+v", packet)
	}
}
