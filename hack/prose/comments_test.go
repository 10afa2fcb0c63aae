// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheCommentsOfAFolderAreBoundByTheRatchetOrTheBudgets(t *testing.T) {
	clause := sentence{place: "x.go:1", text: "Says what it does."}
	filler := sentence{place: "x.go:2", text: strings.Repeat("word ", 192)}
	ratchet := map[string]bounds{"internal/old": {who: 10, nobody: 1}}
	cases := map[string]struct {
		folder    string
		sentences []sentence
		want      int
	}{
		"a listed folder at its bound":        {"internal/old", []sentence{clause, clause, filler}, 0},
		"a listed folder above its bound":     {"internal/old", []sentence{clause, clause, clause, filler}, 3},
		"a folder without a line":             {"internal/new", []sentence{clause, clause, filler}, 2},
		"one use in a folder without a line":  {"internal/new", []sentence{clause, filler}, 0},
		"nobody in a folder without a line":   {"internal/new", []sentence{{text: "Nobody reads."}, {text: "Nothing is read."}, filler}, 2},
		"a headless comment is no finding":    {"internal/new", []sentence{{text: "What it is."}, filler}, 0},
		"a retired word in a comment is none": {"internal/new", []sentence{{text: "It is put back."}, filler}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := judgeComments(area{name: tc.folder, sentences: tc.sentences}, ratchet); len(got) != tc.want {
				t.Errorf("%d findings, want %d: %s", len(got), tc.want, strings.Join(got, "\n"))
			}
		})
	}
}

func TestANeedlessLineOfTheRatchetIsAFinding(t *testing.T) {
	areas := []area{
		{name: "internal/clean", sentences: []sentence{{text: "The folder is clean."}}},
		{name: "internal/old", sentences: []sentence{{text: "What and who, whoever."}}},
	}
	got := judgeRatchet(areas, map[string]bounds{"internal/clean": {3, 1}, "internal/old": {900, 1}, "internal/gone": {9, 9}})
	want := []string{
		"hack/prose/ratchet.txt: the comments of internal/clean keep the budgets: remove its line",
		"hack/prose/ratchet.txt: folder internal/gone is gone: remove its line",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheRatchetHasALineForEachFolder(t *testing.T) {
	got, err := parseRatchet("# a comment\n\ninternal/a 9 4\ncmd/b 5 1\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bounds{"internal/a": {9, 4}, "cmd/b": {5, 1}}, got, cmp.AllowUnexported(bounds{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{
		"a bound is missing":     "internal/a 9\n",
		"a bound is no number":   "internal/a 9 few\n",
		"the other is no number": "internal/a many 1\n",
		"a folder has two lines": "internal/a 9 4\ninternal/a 8 4\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseRatchet(text); err == nil {
				t.Error("parseRatchet took the text")
			}
		})
	}
}
