// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"testing"

	"github.com/plumbline-dev/plumbline/internal/actions/preview"
)

func TestAPreviewCountsTheWritesThatConverge(t *testing.T) {
	plan := func(outcomes ...preview.Outcome) preview.Plan {
		p := preview.Plan{}
		for _, o := range outcomes {
			p.Steps = append(p.Steps, preview.Step{Outcome: o})
		}
		return p
	}
	cases := map[string]struct {
		report preview.Report
		want   string
	}{
		"a policy with a problem":        {preview.Report{Problems: []string{"no such zone"}}, "The policy has to be put right first."},
		"no plan":                        {preview.Report{}, "There is no write to make."},
		"one write that converges":       {preview.Report{Plans: []preview.Plan{plan(preview.Converges)}}, "The write would lead to the authorized state. The dry run stored no object."},
		"two plans of which all do":      {preview.Report{Plans: []preview.Plan{plan(preview.Converges), plan(preview.Converges, preview.Converges)}}, "All 3 writes would lead to the authorized state. The dry runs stored no object."},
		"one write of three is refused":  {preview.Report{Plans: []preview.Plan{plan(preview.Converges, preview.Refused, preview.Converges)}}, "2 of 3 writes would lead to the authorized state. The dry runs stored no object."},
		"one write that was never tried": {preview.Report{Plans: []preview.Plan{plan(preview.Unknown)}}, "0 of 1 writes would lead to the authorized state. The dry runs stored no object."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := DescribePreview(&tc.report); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestADryRunIsMarkedGoodOnlyWhereTheWriteConverges(t *testing.T) {
	cases := map[preview.Outcome]struct{ mark, words string }{
		preview.Converges: {"✓", "leads to the authorized state"},
		preview.Diverges:  {"✗", "would not lead to the authorized state"},
		preview.Refused:   {"✗", "refused"},
		preview.Forbidden: {"✗", "you may not write it"},
		preview.Moved:     {"✗", "changed since it was looked at"},
		preview.Unknown:   {"?", "could not be tried"},
		"Unheard":         {"?", "Unheard"},
	}
	for outcome, want := range cases {
		t.Run(string(outcome), func(t *testing.T) {
			if mark, words := MarkDryRun(outcome), DescribeDryRun(outcome); mark != want.mark || words != want.words {
				t.Errorf("got %s %q, want %s %q", mark, words, want.mark, want.words)
			}
		})
	}
}
