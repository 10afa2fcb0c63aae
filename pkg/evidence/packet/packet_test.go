// SPDX-License-Identifier: Apache-2.0

package packet_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
)

const chain = "0c7f4a52-1f3e-4a0b-9d58-3f1d5d2c9a01"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func digest(c string) string { return "sha256:" + strings.Repeat(c, 64) }
func pl1(c string) string    { return "pl1:" + digest(c) }
func took(d time.Duration) *metav1.Duration {
	return &metav1.Duration{Duration: d}
}

// planBody has two targets, of which the first is the more severe.
func planBody(t *testing.T) json.RawMessage {
	t.Helper()
	target := func(name string, level v1alpha1.SeverityLevel) v1alpha1.PlanTarget {
		return v1alpha1.PlanTarget{
			BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, UID: "uid-" + name,
			DriftedHash: pl1("d"), DesiredHash: pl1("a"), Paths: []string{"/spec/replicas"}, Action: v1alpha1.ActionReconcile,
			Severity:  v1alpha1.Severity{Level: level, Score: 71, Factors: []v1alpha1.SeverityFactor{{Name: "DriftType", Score: 80, Weight: 30}}},
			DriftType: v1alpha1.DriftImage, FirstSeenTime: metav1.NewTime(noon.Add(-time.Hour)), Actors: []string{"bob"},
		}
	}
	raw, err := json.Marshal(v1alpha1.PlannedRemediation{Targets: []v1alpha1.PlanTarget{target("web", v1alpha1.SeverityHigh), target("cart", v1alpha1.SeverityMedium)}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// decided is a decision about the plan, as the record of a sequence.
func decided(kind evidence.Kind, sequence int64, at time.Time, state string) evidence.Record {
	return evidence.Record{
		Kind: kind, At: at, Chain: evidence.Chain{UID: chain, Sequence: sequence},
		Subject: evidence.Subject{APIVersion: "plumbline.dev/v1alpha1", Kind: "RemediationPlan", Namespace: "shop", Name: "p", UID: "uid-p", Hash: digest("c")},
		Policy:  &evidence.Policy{Name: "production", UID: chain, Generation: 3, Digest: digest("b")},
		Plan:    &evidence.Plan{Namespace: "shop", Name: "p", UID: "uid-p", Digest: digest("c")},
		Bodies:  []evidence.Body{{Of: evidence.BodyPolicy, Digest: digest("b")}, {Of: evidence.BodyPlan, Digest: digest("c")}},
		Result:  evidence.Result{State: state}, InitiatedBy: "system:auto", Requester: "platform", CorrelationID: "c-1", DriftReportID: "d-1",
	}
}

// ended is a step that took some time, as the record of a sequence.
func ended(sequence int64, step int32, state, reason string, took time.Duration, more ...evidence.Body) evidence.Record {
	name := []string{"web", "cart"}[step]
	r := decided(evidence.KindStep, sequence, noon.Add(time.Minute), state)
	r.Subject = evidence.Subject{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name, UID: "uid-" + name, Hash: pl1("a")}
	r.Step = &evidence.Step{Index: step, Action: "Reconcile"}
	r.Drift, r.Severity = evidence.NewDrift([]string{"/spec/replicas"}), &evidence.Severity{Level: "High", Score: 71}
	r.Result.Reason, r.Bodies = reason, append(r.Bodies, more...)
	if took > 0 {
		r.Step.StartedAt = r.At.Add(-took)
		r.Intent = &evidence.Intent{UID: "uid-" + name, PreHash: pl1("d"), DesiredHash: pl1("a"), At: r.At}
	}
	return r
}

func none(*evidence.Record) bool { return false }

func sealed(records ...evidence.Record) []evidence.Sealed {
	var all []evidence.Sealed
	for _, r := range records {
		all = append(all, evidence.Sealed{Record: r})
	}
	return all
}

func before(c string) evidence.Body {
	return evidence.Body{Of: evidence.BodyBefore, Digest: digest(c)}
}

func written(c string) evidence.Body {
	return evidence.Body{Of: evidence.BodyWritten, Digest: digest(c)}
}

// Section 6 of the review of remediation: seed 000 wants policy, plan, drift, severities,
// results, who, when and artifacts in one packet.
func TestAPacketTellsAllThatTheSeedAsksFor(t *testing.T) {
	body := planBody(t)
	approved := decided(evidence.KindPlanApproved, 3, noon, "Running")
	approved.Approver = "alice"
	records := sealed(
		decided(evidence.KindPlanCreated, 2, noon.Add(-time.Minute), "Created"), approved,
		ended(5, 0, "Verified", "", 30*time.Second, before("1"), written("2")),
		ended(6, 1, "Failed", "Unhealthy", 10*time.Second, before("3"), written("2")),
		decided(evidence.KindPlanFinished, 9, noon.Add(2*time.Minute), "PartialSuccess"),
	)
	bodies := packet.Bodies{
		digest("b"): {Body: json.RawMessage(`{"environment":"production"}`)}, digest("c"): {Body: body},
		digest("1"): {Body: json.RawMessage(`{"spec":{"replicas":7}}`)}, digest("2"): {Body: json.RawMessage(`{"spec":{"replicas":3}}`)},
		digest("3"): {Problem: "gone"},
	}
	drift := func(step int32, name, level string) packet.Drift {
		return packet.Drift{
			Step: step, Object: "apps/v1/Deployment/shop/" + name + "#uid-" + name, DriftType: "DigestMismatch",
			Severity: &evidence.Severity{Level: level, Score: 71, Factors: []evidence.Factor{{Name: "DriftType", Score: 80, Weight: 30}}},
			Paths:    []string{"/spec/replicas"}, FirstSeen: noon.Add(-time.Hour), Actors: []string{"bob"}, Action: "Reconcile",
			DriftedHash: pl1("d"), DesiredHash: pl1("a"),
		}
	}
	want := &packet.Packet{
		ID: chain + ".2-9", Chain: packet.Span{UID: chain, First: 2, Last: 9, Records: 5}, DriftReportID: "d-1", CorrelationID: "c-1",
		Status: "PartialSuccess", InitiatedBy: "system:auto", Requester: "platform", Approvers: []string{"alice"},
		InitiatedAt: noon.Add(-time.Minute), CompletedAt: noon.Add(2 * time.Minute),
		Policy:        packet.Policy{Policy: *records[0].Record.Policy, Content: bodies[digest("b")]},
		Plan:          packet.Plan{Plan: *records[0].Record.Plan, Content: bodies[digest("c")]},
		DetectedDrift: []packet.Drift{drift(0, "web", "High"), drift(1, "cart", "Medium")},
		Results: []packet.Result{
			{
				Step: 0, Object: "apps/v1/Deployment/shop/web#uid-web", Action: "Reconcile", Status: "Verified",
				StartedAt: noon.Add(30 * time.Second), FinishedAt: noon.Add(time.Minute), Duration: took(30 * time.Second),
				PreviousDigest: pl1("d"), CurrentDigest: pl1("a"), Record: 5,
			},
			{
				Step: 1, Object: "apps/v1/Deployment/shop/cart#uid-cart", Action: "Reconcile", Status: "Failed", Reason: "Unhealthy",
				StartedAt: noon.Add(50 * time.Second), FinishedAt: noon.Add(time.Minute), Duration: took(10 * time.Second),
				PreviousDigest: pl1("d"), CurrentDigest: pl1("a"), Record: 6,
			},
		},
		Duration: took(90 * time.Second),
		Metrics: packet.Metrics{
			TotalTargets: 2, Succeeded: 1, Failed: 1,
			Durations: packet.Durations{Total: took(40 * time.Second), Average: took(20 * time.Second)},
		},
		GeneratedArtifacts: []packet.Artifact{
			{Of: evidence.BodyBefore, Digest: digest("1"), Steps: []int32{0}, Content: bodies[digest("1")]},
			{Of: evidence.BodyWritten, Digest: digest("2"), Steps: []int32{0, 1}, Content: bodies[digest("2")]},
			{Of: evidence.BodyBefore, Digest: digest("3"), Steps: []int32{1}, Content: packet.Content{Problem: "gone"}},
		},
	}
	got := packet.New(records, bodies, none)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{digest("b"), digest("c"), digest("1"), digest("2"), digest("3")}, packet.Digests(records)); diff != "" {
		t.Errorf("digests (-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{`"duration":"30s"`, `"duration":"1m30s"`, `"totalDuration":"40s"`, `"averageTargetDuration":"20s"`, `"evidencePacketID":"` + chain + `.2-9"`} {
		if !strings.Contains(string(raw), field) {
			t.Errorf("%s is missing in %s", field, raw)
		}
	}
}

// A verdict comes after the end of the plan, and belongs to its step.
func TestAPacketTellsWhetherAStepHelped(t *testing.T) {
	assessed := ended(7, 1, "Completed", "", 0)
	assessed.Kind, assessed.At, assessed.Drift, assessed.Severity = evidence.KindAssessment, noon.Add(time.Hour), nil, nil
	assessed.Assessment = &evidence.Assessment{Name: "p-1", UID: "uid-of-it", Reason: "spec_drift", Verdict: "Invalidated", Score: new(int32(0)), Formula: 1}
	records := sealed(
		decided(evidence.KindPlanCreated, 2, noon, "Created"), ended(3, 0, "Verified", "", time.Second), ended(4, 1, "Verified", "", time.Second),
		decided(evidence.KindPlanFinished, 5, noon.Add(time.Minute), "Succeeded"), assessed,
	)
	p := packet.New(records, nil, none)
	want := []*packet.Effect{nil, {Assessment: *assessed.Assessment, CompletedAt: noon.Add(time.Hour), Record: 7}}
	if diff := cmp.Diff(want, []*packet.Effect{p.Results[0].Effect, p.Results[1].Effect}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(p.Results) != 2 || p.Status != "Succeeded" || !p.CompletedAt.Equal(noon.Add(time.Minute)) {
		t.Errorf("the plan ended as %s at %s, with %d results", p.Status, p.CompletedAt, len(p.Results))
	}
}

func TestAPacketIsTheSameHoweverOftenItIsMade(t *testing.T) {
	records := sealed(decided(evidence.KindPlanCreated, 2, noon, "Created"), ended(5, 0, "Verified", "", time.Second))
	first := packet.New(records, nil, none)
	if diff := cmp.Diff(first, packet.New(records, nil, none)); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	more := slices.Concat(records, sealed(decided(evidence.KindPlanFinished, 6, noon, "Succeeded")))
	if id := packet.New(more, nil, none).ID; id == first.ID {
		t.Errorf("a packet with one record more has the same id, %s", id)
	}
}

func TestWhatAPacketSaysWithoutTheBodyOfThePlan(t *testing.T) {
	records := sealed(
		decided(evidence.KindPlanCreated, 1, noon, "Created"),
		ended(2, 1, "Skipped", "AlreadyDesired", 0), ended(3, 0, "Skipped", "TargetMoved", time.Minute),
	)
	for name, test := range map[string]struct {
		plan    packet.Content
		problem string
	}{
		"it is missing": {packet.Content{Problem: "the store lacks it"}, "the store lacks it"},
		"it is no plan": {packet.Content{Body: json.RawMessage(`{"targets":7}`)}, "the body is no plan: "},
	} {
		t.Run(name, func(t *testing.T) {
			p := packet.New(records, packet.Bodies{digest("c"): test.plan}, none)
			if !strings.HasPrefix(p.Plan.Problem, test.problem) || p.Plan.Body != nil {
				t.Errorf("the plan is %+v", p.Plan)
			}
			want := []packet.Drift{
				{Step: 0, Object: "apps/v1/Deployment/shop/web#uid-web", Severity: &evidence.Severity{Level: "High", Score: 71}, Paths: []string{"/spec/replicas"}, Action: "Reconcile", DriftedHash: pl1("d"), DesiredHash: pl1("a")},
				{Step: 1, Object: "apps/v1/Deployment/shop/cart#uid-cart", Severity: &evidence.Severity{Level: "High", Score: 71}, Paths: []string{"/spec/replicas"}, Action: "Reconcile"},
			}
			if diff := cmp.Diff(want, p.DetectedDrift); diff != "" {
				t.Errorf("drift (-want +got):\n%s", diff)
			}
			metrics := packet.Metrics{TotalTargets: 2, Succeeded: 1, Skipped: 1, Durations: packet.Durations{Total: took(time.Minute), Average: took(time.Minute)}}
			if diff := cmp.Diff(metrics, p.Metrics); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
			if p.Status != "" || !p.CompletedAt.IsZero() || p.Duration != nil {
				t.Errorf("a plan under way is %q, completed at %s, took %v", p.Status, p.CompletedAt, p.Duration)
			}
		})
	}
}

func TestDigestsNamesPolicyAndPlanWithoutTheirBodies(t *testing.T) {
	bare := decided(evidence.KindPlanCreated, 2, noon, "Created")
	bare.Bodies = nil
	unnamed := bare
	unnamed.Policy, unnamed.Plan = &evidence.Policy{Name: "production"}, nil
	if diff := cmp.Diff([]string{digest("b"), digest("c")}, packet.Digests(sealed(unnamed, bare, bare))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPlanBeginsWithTheFirstStepThatWasGranted(t *testing.T) {
	finished := decided(evidence.KindPlanFinished, 9, noon.Add(2*time.Minute), "Succeeded")
	for name, test := range map[string]struct {
		steps []evidence.Record
		want  *metav1.Duration
	}{
		"no step was granted":             {[]evidence.Record{ended(5, 0, "Skipped", "TargetMoved", 0)}, nil},
		"the first one alone":             {[]evidence.Record{ended(5, 0, "Verified", "", 30*time.Second), ended(6, 1, "Skipped", "TargetMoved", 0)}, took(90 * time.Second)},
		"the second one before the first": {[]evidence.Record{ended(5, 0, "Verified", "", 10*time.Second), ended(6, 1, "Verified", "", 30*time.Second)}, took(90 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			got := packet.New(sealed(append(test.steps, finished)...), nil, none)
			if diff := cmp.Diff(test.want, got.Duration); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestABodyIsReadAsItIsOrNotAtAll(t *testing.T) {
	for name, test := range map[string]struct {
		body []byte
		err  error
		want packet.Content
	}{
		"a body":            {[]byte(`{"a":1}`), nil, packet.Content{Body: json.RawMessage(`{"a":1}`)}},
		"no JSON":           {[]byte(`{`), nil, packet.Content{Problem: "the body is no JSON"}},
		"one of another":    {[]byte(`{}`), errors.New("digest mismatch"), packet.Content{Problem: "digest mismatch"}},
		"one that is empty": {nil, nil, packet.Content{Problem: "the body is no JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, packet.Read(test.body, test.err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMeasure(t *testing.T) {
	at := noon.Add
	for name, test := range map[string]struct {
		targets []packet.Taken
		want    packet.Durations
	}{
		"no target":                     {nil, packet.Durations{}},
		"none that began":               {[]packet.Taken{{To: noon}}, packet.Durations{}},
		"none that ended":               {[]packet.Taken{{From: noon}}, packet.Durations{}},
		"two, and one that never began": {[]packet.Taken{{at(0), at(4 * time.Second)}, {at(0), at(time.Second)}, {To: noon}}, packet.Durations{Total: took(5 * time.Second), Average: took(2500 * time.Millisecond)}},
		"three whose mean is no whole":  {[]packet.Taken{{at(0), at(time.Second)}, {at(0), at(0)}, {at(0), at(0)}}, packet.Durations{Total: took(time.Second), Average: took(333 * time.Millisecond)}},
		"one that ends before it began": {[]packet.Taken{{at(time.Second), at(0)}}, packet.Durations{Total: took(0), Average: took(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, packet.Measure(test.targets)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
