// SPDX-License-Identifier: Apache-2.0

package score_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/campaign"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/explanation"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/score"
)

func TestWantedScoresAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []score.Wanted
		err  string
	}{
		"in their order":           {"# why\npkg/b 95\n\npkg/a   90\n", []score.Wanted{{"pkg/b", 95}, {"pkg/a", 90}}, ""},
		"from no line":             {"", nil, ""},
		"but not without a score":  {"pkg/a", nil, "line 1: a line has a directory and a percentage"},
		"but not beyond a hundred": {"#\npkg/a 101", nil, `line 2: "101" is not a percentage`},
		"but not below nothing":    {"pkg/a -1", nil, `line 1: "-1" is not a percentage`},
		"but not from a word":      {"pkg/a all", nil, `line 1: "all" is not a percentage`},
		"but not twice":            {"pkg/a 90\npkg/a 95", nil, "line 2: pkg/a is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := score.ReadWanted(strings.NewReader(tc.text))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err == nil && tc.err != "" || err != nil && err.Error() != tc.err {
				t.Errorf("the error is %v, want %q", err, tc.err)
			}
		})
	}
}

func TestAnExplainedSurvivorCountsLikeAKilledOne(t *testing.T) {
	outcomes := []campaign.Outcome{
		{Mutant: mutant("a"), Verdict: campaign.Killed}, {Mutant: mutant("b"), Verdict: campaign.Survived},
		{Mutant: mutant("c"), Verdict: campaign.Survived}, {Mutant: mutant("d"), Verdict: campaign.Killed},
	}
	explained := explanation.Set{mutant("c").Key: "it is the same", mutant("d").Key: "it is the same"}
	got := score.CountOutcomes(score.Wanted{Package: "p", Percent: 75}, outcomes, explained)
	want := score.Package{
		Wanted: score.Wanted{Package: "p", Percent: 75}, Killed: 2, Explained: 1, Of: 4,
		Survivors: []mutation.Mutant{mutant("b")}, Needless: []mutation.Key{mutant("d").Key},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !got.IsEnough() {
		t.Errorf("%d %% is not enough", got.Percent())
	}
}

func TestAScoreIsRoundedDown(t *testing.T) {
	for name, tc := range map[string]struct {
		killed, of, want int
		enough           bool
	}{
		"just below": {949, 1000, 94, false}, "just enough": {19, 20, 95, true}, "none of none": {0, 0, 100, true}, "none": {0, 3, 0, false},
		"all but one of a few": {3, 4, 75, true}, "all but two of a few": {2, 4, 50, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := score.Package{Wanted: score.Wanted{Percent: 95}, Killed: tc.killed, Of: tc.of}
			if p.Percent() != tc.want || p.IsEnough() != tc.enough {
				t.Errorf("%d %%, enough %t", p.Percent(), p.IsEnough())
			}
		})
	}
}

func TestASampleRefutesAScoreOnlyIfChanceDoesNotExplainIt(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted, survivors, of int
		refuted               bool
	}{
		"no survivor":                        {95, 0, 8, false},
		"no mutant":                          {95, 0, 0, false},
		"two of four, which 1 of 19 has":     {90, 2, 4, false},
		"three of four, which 1 of 270 has":  {90, 3, 4, true},
		"three of eight, which 1 of 26 has":  {90, 3, 8, false},
		"four of eight, which 1 of 200 has":  {90, 4, 8, true},
		"two of eight, which 1 of 17 has":    {95, 2, 8, false},
		"three of eight, which 1 of 172 has": {95, 3, 8, true},
		"one, where all are wanted":          {100, 1, 8, true},
		"all, where none is wanted":          {0, 8, 8, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := score.Package{Wanted: score.Wanted{Percent: tc.wanted}, Killed: tc.of - tc.survivors, Of: tc.of}
			if p.IsRefuted() != tc.refuted {
				t.Errorf("refuted: %t", p.IsRefuted())
			}
		})
	}
}

func TestTheTableIsOneForAPageOfTheDocumentation(t *testing.T) {
	var out bytes.Buffer
	err := score.WriteTable(&out, []score.Package{{Wanted: score.Wanted{Package: "pkg/a", Percent: 95}, Killed: 9, Explained: 1, Of: 12}})
	want := `| package | killed | explained | of | score | wanted |
|---      |---     |---        |--- |---    |---     |
| pkg/a   | 9      | 1         | 12 | 83 %  | 95 %   |
`
	if diff := cmp.Diff(want, out.String()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestSafeguardsAreCountedByWhatNoticed(t *testing.T) {
	row := score.Safeguards{Package: "pkg/a"}
	row.Count(true, false, false)
	row.Count(true, true, false)
	row.Count(true, false, true)
	row.Count(false, false, true)
	row.Count(false, false, false)
	if diff := cmp.Diff(score.Safeguards{Package: "pkg/a", Unit: 2, Simulated: 1, Explained: 1, Survived: 1}, row); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var out bytes.Buffer
	err := score.WriteSafeguards(&out, []score.Safeguards{row, {Package: "none"}})
	want := `| package | unit tests | simulator | explained | not noticed | score |
|---      |---         |---        |---        |---          |---    |
| pkg/a   | 2          | 1         | 1         | 1           | 75 %  |
| none    | 0          | 0         | 0         | 0           | 100 % |
`
	if diff := cmp.Diff(want, out.String()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func mutant(old string) mutation.Mutant { return mutation.Mutant{Key: mutation.Key{Old: old}} }
