// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// statusSchema is that of the status of an ABRelease.
func statusSchema(t *testing.T) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	raw, err := os.ReadFile(filepath.FromSlash("../../../charts/plumbline/files/crds/plumbline.dev_abreleases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
}

// fill returns the largest value of a schema: each list is full, and each text is as long as it can be.
func fill(t *testing.T, path string, s *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case s.XIntOrString:
		return "99.99"
	case len(s.Enum) > 0:
		longest := ""
		for _, e := range s.Enum {
			longest = longer(longest, strings.Trim(string(e.Raw), `"`))
		}
		return longest
	}
	switch s.Type {
	case "object":
		out := map[string]any{}
		for name := range s.Properties {
			property := s.Properties[name]
			out[name] = fill(t, path+"."+name, &property)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			out["label"] = fill(t, path+"[]", s.AdditionalProperties.Schema)
		}
		return out
	case "array":
		if s.MaxItems == nil {
			t.Fatalf("%s has no bound", path)
		}
		out := make([]any, *s.MaxItems)
		for i := range out {
			out[i] = fill(t, path+"[]", s.Items.Schema)
		}
		return out
	case "integer":
		return 1<<31 - 1
	case "string":
		switch {
		case s.Format == "date-time":
			return "2026-11-02T12:00:00Z"
		case s.MaxLength == nil:
			t.Fatalf("%s has no bound", path)
		}
		return strings.Repeat("w", int(*s.MaxLength))
	}
	t.Fatalf("%s has the type %q", path, s.Type)
	return nil
}

func longer(a, b string) string {
	if len(b) > len(a) {
		return b
	}
	return a
}

// largest returns the largest status of a release with a rollout: each list is full. A rollout has two
// variations, which name workloads; the discovery server writes six kinds of conditions.
func largest(t *testing.T) *v1alpha1.ABReleaseStatus {
	t.Helper()
	schema := statusSchema(t)
	data, err := json.Marshal(fill(t, "status", &schema))
	if err != nil {
		t.Fatal(err)
	}
	status := &v1alpha1.ABReleaseStatus{}
	if err := json.Unmarshal(data, status); err != nil {
		t.Fatal(err)
	}
	status.Effective.Variations, status.Wanted, status.Clamped, status.Observed = status.Effective.Variations[:2], status.Wanted[:2], status.Clamped[:2], status.Observed[:2]
	for i := range status.Effective.Variations {
		status.Effective.Variations[i].Selector = nil
	}
	status.Rollout.Seen = status.Rollout.Seen[:2]
	status.Conditions, status.Split = status.Conditions[:6], strings.Repeat("w", 2*63+len(" 99.99 / "+" 99.99"))
	for i := range status.Conditions {
		status.Conditions[i].Type, status.Conditions[i].Reason = v1alpha1.ConditionAcknowledged, strings.Repeat("w", 63)
	}
	return status
}

func TestTheLargestStatusFits(t *testing.T) {
	status := largest(t)
	if err := rollout.Fit(status); err != nil {
		t.Error(err)
	}
	data, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > rollout.MaxStatus {
		t.Errorf("%d bytes", len(data))
	}
	if len(status.Rollout.History) == 0 {
		t.Error("no line of the history is left, so that their numbers begin anew")
	}
	again := status.DeepCopy()
	if err := rollout.Fit(again); err != nil || cmp.Diff(status, again) != "" {
		t.Errorf("what fits is shortened again: %v", err)
	}
}

func TestAStatusThatCannotFitIsAnError(t *testing.T) {
	status := largest(t)
	status.Rollout.Analysis.Checkpoint = strings.Repeat("w", rollout.MaxStatus)
	if err := rollout.Fit(status); err == nil {
		t.Error("no error")
	}
}

// Decisions read the same from a status that was shortened, and a status that fits is not touched.
func TestFit_LeavesTheFactsOfDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := func(name string) string { return strings.Repeat("w", rapid.IntRange(1, 512).Draw(t, name)) }
		s := rollout.State{Active: "a", Run: &rollout.Run{Number: 3, State: rollout.Running, Active: "a", Canary: "b", EndMessage: long("end"), Approval: rollout.Approval{Policy: rollout.ApprovalNotAuthor, Author: long("author")}}, Seen: map[string]rollout.Revision{"a": {Hash: "1"}}}
		for i := range rapid.IntRange(1, rollout.MaxStages).Draw(t, "stages") {
			s.Run.Stages = append(s.Run.Stages, rollout.StageStatus{Stage: rollout.Stage{Weight: 1000}, State: rollout.StageRunning, ApprovedBy: long("by"), Message: long("message"), Restarts: i})
		}
		for i := range rapid.IntRange(1, rollout.MaxHistory).Draw(t, "lines") {
			s.History = append(s.History, rollout.Entry{Number: int64(i + 1), Run: 3, Event: "ab.created", Message: long("line")})
		}
		for i := range rapid.IntRange(0, rollout.MaxRejected).Draw(t, "rejected") {
			s.Rejected = append(s.Rejected, rollout.Rejected{Revision: rollout.Revision{Hash: strconv.Itoa(i), Image: long("image")}, Variation: "b", Run: 1, Reason: rollout.EndFailed})
		}
		var status v1alpha1.ABReleaseStatus
		s.Write(&status)
		whole := status.DeepCopy()
		before, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		if err := rollout.Fit(&status); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, &status); len(before) <= rollout.MaxStatus && diff != "" {
			t.Fatalf("what fits was changed:\n%s", diff)
		}
		after := rollout.StateOf(&status)
		if last := after.History[len(after.History)-1]; last.Number != s.History[len(s.History)-1].Number {
			t.Fatalf("the last line of the history is %d", last.Number)
		}
		forPeople := cmp.FilterPath(func(p cmp.Path) bool {
			last := p.Last().String()
			return last == ".Image" || last == ".Message" || last == ".EndMessage" || last == ".ApprovedBy" || last == ".History"
		}, cmp.Ignore())
		if diff := cmp.Diff(rollout.StateOf(whole), after, forPeople); diff != "" {
			t.Fatalf("what decides (-before +after):\n%s", diff)
		}
		for i := range after.Run.Stages {
			if after.Run.Stages[i].ApprovedBy == "" {
				t.Fatalf("stage %d is not approved any more", i+1)
			}
		}
	})
}
