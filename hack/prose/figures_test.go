// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func retiredForTest(t *testing.T) retiredWords {
	t.Helper()
	words, err := parseRetired("# Glossary\n\n## Retired words\n\n| Not | Use |\n|---|---|\n| put back, puts back | remediate |\n| in force | active |\n\n## Next\n\n| guard | x |\n")
	if err != nil {
		t.Fatal(err)
	}
	return words
}

func TestSentencesAreCounted(t *testing.T) {
	retired := retiredForTest(t)
	tests := map[string]struct {
		text string
		want figures
	}{
		"a sentence that names its actor":            {"The executor writes one object.", figures{words: 5}},
		"a clause with what":                         {"The page says what it means.", figures{words: 6, who: 1}},
		"a sentence without a noun at its beginning": {"Who writes is told.", figures{words: 4, who: 1, headless: 1}},
		"a question":                                  {"Who changed this field?", figures{words: 4, who: 1}},
		"nobody as an actor":                          {"Nobody writes here, and nothing is read.", figures{words: 7, nobody: 2}},
		"a pronoun of a person":                       {"We keep his object.", figures{words: 4, persons: 2}},
		"words that the glossary retires":             {"The split in force is Put back.", figures{words: 7, retired: 2}},
		"a retired word that is a part of another":    {"This is in forceful use.", figures{words: 5}},
		"a sentence of twenty-five words":             {strings.Repeat("word ", 25), figures{words: 25}},
		"a sentence of twenty-six words":              {strings.Repeat("word ", 26), figures{words: 26, long: 1}},
		"a word that has who in it is another word":   {"The whole whatnot is whose.", figures{words: 5, who: 1}},
		"a headless sentence behind a sign of markup": {"**What is here** stays.", figures{words: 4, who: 1, headless: 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := sentence{text: tc.text}.count(retired)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(figures{})); diff != "" {
				t.Errorf("the figures differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestATitleMayBeginWithWhat(t *testing.T) {
	if f := (sentence{text: "What a guard does.", heading: true}).count(nil); f.headless != 0 {
		t.Error("a title counts as a sentence without a noun")
	}
}

func TestAnAreaIsJudgedByItsBudgets(t *testing.T) {
	retired := retiredForTest(t)
	filler := func(n int) sentence { return sentence{place: "page:1", text: strings.Repeat("word ", n)} }
	clause := sentence{place: "page:7", text: "It says what it does."}
	tests := map[string]struct {
		sentences []sentence
		want      int
	}{
		"one use in a short text":           {[]sentence{clause}, 0},
		"two uses in a short text":          {[]sentence{clause, clause}, 2},
		"three uses in a thousand words":    {[]sentence{clause, clause, clause, filler(985)}, 0},
		"three uses in fewer words":         {[]sentence{clause, clause, clause, filler(984)}, 3},
		"one retired word in a long text":   {[]sentence{{place: "page:9", text: "It is put back."}, filler(5000)}, 1},
		"one headless sentence":             {[]sentence{{place: "page:9", text: "What it is."}, filler(5000)}, 1},
		"one pronoun of a person":           {[]sentence{{place: "page:9", text: "She reads it."}, filler(5000)}, 1},
		"nobody twice in a thousand words":  {[]sentence{{place: "page:2", text: "Nobody reads nothing."}, filler(997)}, 1},
		"nobody twice in two thousand":      {[]sentence{{place: "page:2", text: "Nobody reads nothing."}, filler(1997)}, 0},
		"a long sentence is counted, alone": {[]sentence{filler(60)}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := judge(area{name: "page", sentences: tc.sentences}, retired)
			if len(got) != tc.want {
				t.Errorf("judge found %d sentences, want %d: %s", len(got), tc.want, strings.Join(got, "\n"))
			}
			for _, finding := range got {
				if !strings.HasPrefix(finding, "page:") {
					t.Errorf("the finding does not begin with its place: %s", finding)
				}
			}
		})
	}
}

func TestAFieldWithoutItsNameIsAFinding(t *testing.T) {
	if got := judge(area{nameless: []string{"x.go:1: no name"}}, nil); len(got) != 1 {
		t.Errorf("judge found %q, want the field", got)
	}
}

func TestTheGlossaryHasToListRetiredWords(t *testing.T) {
	for name, page := range map[string]string{
		"no section":        "# Glossary\n",
		"a section, no row": "\n## Retired words\n\n| Not | Use |\n|---|---|\n",
	} {
		t.Run(name, func(t *testing.T) {
			if words, err := parseRetired(page); err == nil {
				t.Errorf("parseRetired returned %v, want an error", words)
			}
		})
	}
}

func TestAdviceNamesTheWordInUse(t *testing.T) {
	want := "the glossary retires put back: remediate; the glossary retires in force: active"
	if got := retiredForTest(t).advice("It is put back, and in force."); got != want {
		t.Errorf("advice is %q, want %q", got, want)
	}
}
