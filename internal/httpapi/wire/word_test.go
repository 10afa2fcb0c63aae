// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// enumMarker is the marker of an enum above its type.
var enumMarker = regexp.MustCompile(`// \+kubebuilder:validation:Enum=(\S+)\n(?:// [^\n]*\n)*type (\w+) string`)

func TestEachVocabularyHasTheValuesOfItsKind(t *testing.T) {
	kinds := map[string][]string{}
	files, err := filepath.Glob("../../../pkg/apis/plumbline/v1alpha1/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range enumMarker.FindAllStringSubmatch(string(source), -1) {
			kinds[match[2]] = strings.Split(match[1], ";")
		}
	}
	compared := 0
	for enum, v := range vocabularies {
		if !strings.HasSuffix(enum.PkgPath(), "/v1alpha1") {
			continue
		}
		compared++
		var values []string
		for _, term := range v {
			values = append(values, term.value)
		}
		if diff := cmp.Diff(kinds[enum.Name()], values); diff != "" {
			t.Errorf("%s (-kind +vocabulary):\n%s", enum.Name(), diff)
		}
	}
	if compared < 40 {
		t.Errorf("only %d vocabularies were compared", compared)
	}
}

func TestAWordIsSpelledAndRead(t *testing.T) {
	tests := map[string]struct{ value, word string }{
		"by the rule":                   {"AllAtOnce", "all_at_once"},
		"as a design has it":            {"Staged", "canary"},
		"the absent value":              {"", ""},
		"a value of one word":           {"Rolling", "rolling"},
		"a value that the kind has not": {"InWaves", "in_waves"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			word := Spell(v1alpha1.RemediationStrategy(tc.value))
			if string(word) != tc.word {
				t.Errorf("%q is spelled %q, want %q", tc.value, word, tc.word)
			}
			value, err := word.Value()
			if known := tc.value != "InWaves"; known != (err == nil) || known && string(value) != tc.value {
				t.Errorf("%q is read as %q (%v)", word, value, err)
			}
		})
	}
}

func TestEachPhaseOfAPlanHasAStatusOfTheDesign(t *testing.T) {
	tests := map[v1alpha1.PlanPhase]Word[PlanStatus]{
		"": "created", v1alpha1.PlanCreated: "created", v1alpha1.PlanScheduled: "scheduled", v1alpha1.PlanDeferred: "deferred",
		v1alpha1.PlanRunning: "running", v1alpha1.PlanPaused: "paused", v1alpha1.PlanSealing: "running",
		v1alpha1.PlanSucceeded: "succeeded", v1alpha1.PlanPartialSuccess: "partial_success", v1alpha1.PlanFailed: "failed",
		v1alpha1.PlanCanceled: "cancelled", v1alpha1.PlanSuperseded: "cancelled", v1alpha1.PlanSkipped: "cancelled",
	}
	for phase, want := range tests {
		p := &v1alpha1.RemediationPlan{}
		p.Status.Phase = phase
		got := PlanOf(p, &Uids{})
		if got.Status != want || got.Ending != (phase == v1alpha1.PlanSealing) {
			t.Errorf("%q is %q, ending %v; want %q", phase, got.Status, got.Ending, want)
		}
	}
}
