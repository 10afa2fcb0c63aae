// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

var testNow = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func baseline(name string, state v1alpha1.DriftState, changes ...func(*v1alpha1.Baseline)) *v1alpha1.Baseline {
	b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployments.apps." + name, CreationTimestamp: testNow}}
	b.Spec.Target = v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	b.Status.State, b.Status.Guards = state, []string{"SpecGuard/workloads"}
	for _, change := range changes {
		change(b)
	}
	return b
}

func withFinding(path, user string, level v1alpha1.SeverityLevel, score int32) func(*v1alpha1.Baseline) {
	return func(b *v1alpha1.Baseline) {
		b.Status.Findings = append(b.Status.Findings, v1alpha1.Finding{
			Path: path, Operation: v1alpha1.OperationChanged, Type: v1alpha1.DriftImage, Before: `"planted-before"`, After: `"planted-after"`,
			Actor: v1alpha1.Actor{User: user, Class: v1alpha1.ActorUntrusted, Source: v1alpha1.ActorSourceWriterStamp},
		})
		b.Status.FindingsTotal = int32(len(b.Status.Findings))
		b.Status.Severity = &v1alpha1.Severity{Level: level, Score: score}
		b.Status.FirstSeenTime = &testNow
	}
}

func TestAReportOfEachStateAndFormat(t *testing.T) {
	const image = "/spec/template/spec/containers/[name=app]/image"
	owners := map[string]metav1.OwnerReference{
		"SpecGuard/workloads":     {APIVersion: "plumbline.dev/v1alpha1", Kind: "SpecGuard", Name: "workloads", UID: "1"},
		"ClusterSpecGuard/images": {APIVersion: "plumbline.dev/v1alpha1", Kind: "ClusterSpecGuard", Name: "images", UID: "2"},
		"SpecGuard/other":         {APIVersion: "plumbline.dev/v1alpha1", Kind: "SpecGuard", Name: "other", UID: "3"},
	}
	built, ok := Build([]*v1alpha1.Baseline{
		baseline("steady", v1alpha1.StateInSync, func(b *v1alpha1.Baseline) {
			b.Spec.Authorized = &v1alpha1.AuthorizedState{AuthorizationTime: metav1.NewTime(testNow.Add(-time.Hour))}
		}),
		baseline("cart", v1alpha1.StateDrifted, withFinding(image, "mallory", v1alpha1.SeverityMedium, 40)),
		baseline("web", v1alpha1.StateDrifted, withFinding(image, "mallory", v1alpha1.SeverityCritical, 95), withFinding("/spec/replicas", "", v1alpha1.SeverityCritical, 95), func(b *v1alpha1.Baseline) {
			b.Status.Guards, b.Status.PlanName = []string{"ClusterSpecGuard/images", "SpecGuard/workloads", "SpecGuard/gone"}, "production-3f9c2a"
		}),
		baseline("gone", v1alpha1.StateMissing),
		baseline("hidden", v1alpha1.StateUnknown),
		baseline("stale", v1alpha1.StateUnknown, withFinding(image, "mallory", v1alpha1.SeverityHigh, 70)),
		baseline("retired", v1alpha1.StateRetired),
		baseline("free", v1alpha1.StateNotGuarded, func(b *v1alpha1.Baseline) { b.Status.Guards = nil }),
	}, owners)
	if !ok {
		t.Fatal("there is no report")
	}
	built.Namespace, built.Name = "shop", "plumbline"
	for _, format := range Formats() {
		object, err := format.Encode(&built)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.MarshalIndent(object, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "planted") {
			t.Errorf("the %s has a value of the object", format)
		}
		golden.Check(t, filepath.Join("testdata", string(format)+".json"), string(raw)+"\n")
	}
}

func TestANamespaceWithoutGuardedObjectsHasNoReport(t *testing.T) {
	for name, baselines := range map[string][]*v1alpha1.Baseline{
		"no object":                  {},
		"an object that was removed": {baseline("web", v1alpha1.StateRetired)},
		"an object without a guard":  {baseline("web", v1alpha1.StateNotGuarded)},
	} {
		if _, ok := Build(baselines, nil); ok {
			t.Errorf("%s: there is a report", name)
		}
	}
}

// TestAReportIsWritableWhateverItsObjectsHold draws Baselines with texts of any content.
func TestAReportIsWritableWhateverItsObjectsHold(t *testing.T) {
	states := []v1alpha1.DriftState{v1alpha1.StateInSync, v1alpha1.StateDrifted, v1alpha1.StateMissing, v1alpha1.StateUnknown, v1alpha1.StateRetired, v1alpha1.StateNotGuarded, ""}
	rapid.Check(t, func(t *rapid.T) {
		want := openreports.ReportSummary{}
		var baselines []*v1alpha1.Baseline
		for i := range rapid.SampledFrom([]int{0, 1, 2, 10, 30, MaxResults + 100}).Draw(t, "baselines") {
			state := states[i%len(states)]
			text := strings.Repeat(rapid.SampledFrom([]string{"a", "\x00", "é", "\U0001F512", "\xff", "\n", "<", `"`}).Draw(t, "text"), rapid.SampledFrom([]int{0, 1, 1024}).Draw(t, "length"))
			baselines = append(baselines, baseline(fmt.Sprint("web-", i), state, withFinding("/"+text, text, v1alpha1.SeverityHigh, int32(i%101)), func(b *v1alpha1.Baseline) {
				b.Status.Guards = []string{"SpecGuard/" + text, "SpecGuard/b"}
			}))
			switch state {
			case v1alpha1.StateInSync:
				want.Pass++
			case v1alpha1.StateDrifted, v1alpha1.StateMissing:
				want.Fail++
			case v1alpha1.StateUnknown, "":
				want.Error++
			case v1alpha1.StateRetired, v1alpha1.StateNotGuarded:
			}
		}
		built, ok := Build(baselines, nil)
		total := want.Pass + want.Fail + want.Error
		if built.Summary != want || ok != (total > 0) || len(built.Results) > min(total, MaxResults) {
			t.Fatalf("%d results, summary %+v, want %+v", len(built.Results), built.Summary, want)
		}
		for i := 1; i < len(built.Results); i++ {
			if built.Results[i-1].Result == Pass && built.Results[i].Result != Pass {
				t.Fatalf("result %d, a failure, follows a pass", i)
			}
		}
		if whole := min(total, MaxResults); len(built.Results) < whole && len(built.Results) < 200 {
			t.Fatalf("only %d results of %d", len(built.Results), whole)
		}
		raw, err := json.Marshal(built)
		if err != nil || len(raw) > 1<<20 {
			t.Fatalf("%d bytes: %v", len(raw), err)
		}
	})
}
