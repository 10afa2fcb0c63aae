// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// phases are those that a plan may have.
var phases = []v1alpha1.PlanPhase{
	v1alpha1.PlanCreated, v1alpha1.PlanScheduled, v1alpha1.PlanDeferred, v1alpha1.PlanRunning, v1alpha1.PlanPaused, v1alpha1.PlanSealing,
	v1alpha1.PlanSucceeded, v1alpha1.PlanPartialSuccess, v1alpha1.PlanFailed, v1alpha1.PlanCanceled, v1alpha1.PlanSuperseded, v1alpha1.PlanSkipped,
}

// D25 of the review of remediation: the page named kinds of records that no code wrote.
func TestTheEvidencePageNamesTheKindsThatAreWritten(t *testing.T) {
	written := []string{string(evidence.KindStep), string(evidence.KindFence), string(evidence.KindStandby), string(evidence.KindAssessment), string(evidence.KindKeySucceeded), string(evidence.KindDecisionWithdrawn)}
	for _, asked := range []v1alpha1.PlanVerb{"", v1alpha1.PlanExecute, v1alpha1.PlanPause, v1alpha1.PlanCancel} {
		for _, before := range append(slices.Clone(phases), "") {
			for _, after := range phases {
				kind, _, ok := decisionOf(asked, &v1alpha1.RemediationPlanStatus{Phase: before}, &v1alpha1.RemediationPlanStatus{Phase: after})
				if ok && !slices.Contains(written, string(kind)) {
					written = append(written, string(kind))
				}
			}
		}
	}
	text, err := os.ReadFile("../../../docs/reference/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Records\n")
	table, _, _ = strings.Cut(table, "## One record")
	var named []string
	for row := range strings.Lines(table) {
		if kinds, _, ok := strings.Cut(strings.TrimPrefix(row, "| "), " | "); ok {
			for _, kind := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(kinds, -1) {
				named = append(named, kind[1])
			}
		}
	}
	slices.Sort(written)
	slices.Sort(named)
	if diff := cmp.Diff(written, named); diff != "" {
		t.Errorf("kinds (-written +named):\n%s", diff)
	}
}

// D25 of the review of remediation: the page described a field that no record had.
func TestTheFieldsOfTheEvidencePageAreThoseOfARecord(t *testing.T) {
	w := newWorld(t)
	change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
		p.Spec.Control = v1alpha1.PlanControl{Verb: v1alpha1.PlanExecute, RequestedBy: "alice"}
	})
	w.finish()
	fields := map[string]any{}
	for _, r := range w.recorded() {
		if r.Kind != evidence.KindStep {
			continue
		}
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
	}
	delete(fields, "correlationID") // that of logs and events, which have the word too
	has := append(slices.Sorted(maps.Keys(fields)), "subject[0].name", "subject[0].digest", "occurrence")
	text, err := os.ReadFile("../../../docs/reference/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| Field | Meaning |")
	table, _, _ = strings.Cut(table, "\n\n")
	var named []string
	for row := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, field := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			named = append(named, field[1])
		}
	}
	slices.Sort(has)
	slices.Sort(named)
	if diff := cmp.Diff(has, named); diff != "" {
		t.Errorf("fields (-record +page):\n%s", diff)
	}
}
