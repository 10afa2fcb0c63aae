// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

var someUids = &Uids{
	Environments:  map[string]string{"production": "e0000000-0000-4000-8000-000000000001"},
	Namespaces:    map[string]string{"shop": "d0000000-0000-4000-8000-000000000001"},
	EnvironmentOf: map[string]string{"shop": "production"},
}

// read makes an object of the file in testdata; an unknown field fails the test.
func read[T any](t testing.TB, name string) *T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	object := new(T)
	if err := yaml.UnmarshalStrict(raw, object); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return object
}

// shown is an object of the API, with a reader of its JSON.
type shown struct {
	value any
	// again decodes a body and encodes it.
	again func(body []byte) ([]byte, error)
}

func showing[T any](value T) shown {
	return shown{value, func(body []byte) ([]byte, error) {
		if body[0] != '{' {
			return body, json.Unmarshal(body, new(T))
		}
		decoded, err := Decode[T](body)
		if err != nil {
			return nil, err
		}
		return encode(decoded)
	}}
}

func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return b.Bytes(), err
}

// objects are one of each sort, by the names of their golden files.
func objects(t testing.TB) map[string]shown {
	plan, release := read[v1alpha1.RemediationPlan](t, "plan"), read[v1alpha1.ABRelease](t, "release")
	policy := read[v1alpha1.RemediationPolicy](t, "policy")
	return map[string]shown{
		"policy":        showing(PolicyOf(policy, someUids)),
		"policy-status": showing(PolicyStatusOf(policy)),
		"plan":          showing(PlanOf(plan, someUids)),
		"history":       showing(ResultOf(plan)),
		"preview":       showing(previewOf(plan)),
		"execution": showing(Execution{PolicyName: "production", Requests: []ExecutionRequest{
			ExecutionRequestOf(read[v1alpha1.RemediationRequest](t, "request")),
		}}),
		"evidence":         showing(EvidenceOf(somePacket(), []json.RawMessage{json.RawMessage(`{"payload":"e30="}`)}, []string{"record 3 is missing"}, []string{"the anchor was not read"})),
		"history-evidence": showing(ResultOfPacket(somePacket())),
		"release":          showing(ReleaseOf(release, someUids)),
		"traffic":          showing(TrafficOf(release)),
		"health":           showing(HealthOf(release)),
		"traffic-hour":     showing(withHour(TrafficOf(release), func(t *Traffic) { t.LastHour = TrafficHourOf(&release.Spec, someHour()) })),
		"health-hour":      showing(withHour(HealthOf(release), func(h *Health) { h.LastHour = HealthHourOf(&release.Spec, someHour()) })),
		"strategy":         showing(StrategyOf(read[v1alpha1.RolloutStrategy](t, "strategy"))),
		"baseline":         showing(BaselineOf(read[v1alpha1.Baseline](t, "baseline"))),
		"ledger":           showing(LedgerOf(someLedger())),
		"environment":      showing(EnvironmentOf(read[v1alpha1.Environment](t, "environment"))),
		"guard":            showing(ClusterGuardOf(read[v1alpha1.ClusterSpecGuard](t, "guard"))),
		"assessment":       showing(AssessmentOf(read[v1alpha1.EffectivenessAssessment](t, "assessment"))),
		"proxy": showing(ProxyOf(&struct {
			Replica, Namespace, Pod, PodUID string
			Stage                           VisitorStage
			Stages                          map[VisitorStage]int
		}{"xds-0", "shop", "front-0", "uid-front-0", "OnTheWay", map[VisitorStage]int{"Acknowledged": 4, "OnTheWay": 1}})),
		"event": showing(Event{
			ID: "1772366432.2d6f9c3e-5b0a-4b52-8f7c-1d2e3f4a5b6c.3", Type: "target.completed", Namespace: "shop", Name: "production-e82871e6b1",
			PlanID: "2d6f9c3e-5b0a-4b52-8f7c-1d2e3f4a5b6c", TargetID: "9f6a1b1c-2a6d-4e39-b0a4-1c6b0a7d3003", Status: "succeeded", Progress: new(0.5),
			Message: "healthy", Timestamp: time.Date(2026, 3, 1, 12, 0, 32, 0, time.UTC),
		}),
		"whoami":  showing(WhoamiOf(&authenticationv1.UserInfo{Username: "alice", UID: "7", Groups: []string{"sre", "system:authenticated"}})),
		"problem": showing(*NewProblem(Invalid, "", FieldError{"body.trigger", `"age" is none of immediate`})),
	}
}

func someLedger() *v1alpha1.RemediationLedger {
	l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: "production", UID: "b0000000-0000-4000-8000-000000000001", Generation: 2}}
	l.Spec = v1alpha1.RemediationLedgerSpec{Scope: "Environment", Halt: &v1alpha1.LedgerHalt{RequestedBy: "bob", Reason: "INC-9"}}
	l.Status.GrantStartTime = new(metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)))
	return l
}

func withHour[T any](value T, add func(*T)) T {
	add(&value)
	return value
}

func someHour() *history.Series {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &history.Series{
		Since: at.Add(-time.Minute), Cells: []history.Cell{{Start: at, Variation: "next", Requests: 100, Failed: 2, ClientErrors: 3, FailedOver: 4}, {Start: at, Variation: "fresh-control", Requests: 99}},
		Looks: []history.Look{{
			Time: at, Run: 2, Stage: 1, Verdict: judge.Undecided, Reason: judge.TooFewRequests, Errors: history.Bet{E: 1e300, FailsAt: 200}, Latency: history.Bet{E: 0.5, FailsAt: 200}, SlowerThan: 64,
			Canary:  history.Arm{Variation: "next", Samples: 100, ErrorRate: 0.02, Low: 0.005, High: 0.25, SlowRate: 0.01, LatencyP50: 12, LatencyP99: 80},
			Control: history.Arm{Variation: "stable", Samples: 900, ErrorRate: 0.001, High: 0.01, LatencyP50: 11, LatencyP99: 75},
		}},
	}
}

// previewOf previews a plan of two steps, of which the API server refuses one.
func previewOf(plan *v1alpha1.RemediationPlan) Preview {
	out := NewPreview()
	out.Selected, out.Drifted, out.Eligible, out.WaitingFor = 4, 3, 2, "the maintenance window opens"
	out.Add(plan, someUids, []DryRun{
		{Accepted: true, Outcome: "converges", FieldManagers: []string{"helm"}, Changes: []FieldChange{{Path: "/spec/replicas", Operation: "changed", Before: "5", After: "3"}}},
		{Outcome: "forbidden", Message: "you may not update it"},
	})
	out.LeftOut = append(out.LeftOut, PreviewLeftOut{Namespace: "shop", LeftOut: LeftOut{BaselineName: "deployment-api", Reason: "Mode"}})
	return out
}

// VisitorStage stands for the enum of a document that has one.
type VisitorStage string

func somePacket() *packet.Packet {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &packet.Packet{
		ID: "7c0e1f5a.11-13", Chain: packet.Span{UID: "7c0e1f5a", First: 11, Last: 13, Records: 2}, Status: "PartialSuccess",
		InitiatedBy: "system:auto", Requester: "alice", Approvers: []string{"carol"}, InitiatedAt: at, CompletedAt: at.Add(time.Minute),
		Policy:             packet.Policy{Content: packet.Content{Body: json.RawMessage(`{"trigger":"Immediate"}`)}},
		Plan:               packet.Plan{Plan: evidence.Plan{Namespace: "shop", Name: "production-e82871e6b1", UID: "2d6f9c3e-5b0a-4b52-8f7c-1d2e3f4a5b6c"}, Content: packet.Content{Problem: "gone"}},
		DetectedDrift:      []packet.Drift{{Step: 0, Object: "apps/v1/Deployment/shop/web#u", DriftType: "DigestMismatch", FirstSeen: at.Add(-time.Hour), Paths: []string{"/spec"}}},
		Results:            []packet.Result{{Step: 0, Status: "Verified", PreviousDigest: "pl2:aa", CurrentDigest: "pl2:bb", Record: 12}},
		Duration:           &metav1.Duration{Duration: 50 * time.Second},
		Metrics:            packet.Metrics{TotalTargets: 1, Succeeded: 1, Durations: packet.Measure([]packet.Taken{{From: at, To: at.Add(12 * time.Second)}})},
		GeneratedArtifacts: []packet.Artifact{{Of: "Written", Digest: "sha256:ef", Steps: []int32{0}, Content: packet.Content{Body: json.RawMessage(`{"spec":{"replicas":3}}`)}}},
	}
}

func TestEachObjectIsShownAsItsGoldenFile(t *testing.T) {
	for name, object := range objects(t) {
		t.Run(name, func(t *testing.T) {
			body, err := encode(object.value)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", name+".json"), body)
		})
	}
}

func TestEachObjectIsReadAsItWasShown(t *testing.T) {
	for name, object := range objects(t) {
		t.Run(name, func(t *testing.T) {
			body, err := encode(object.value)
			if err != nil {
				t.Fatal(err)
			}
			again, err := object.again(body)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(body, again) {
				t.Errorf("%s\nis read and shown as\n%s", body, again)
			}
		})
	}
}
