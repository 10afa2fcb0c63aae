// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func texts(sentences []sentence) (all []string) {
	for _, s := range sentences {
		all = append(all, s.text)
	}
	return all
}

func TestMarkdownIsSplitIntoSentences(t *testing.T) {
	tests := map[string]struct {
		page string
		want []string
	}{
		"sentences of a paragraph of two lines": {"One is\nhere. Two is there.\n", []string{"One is here.", "Two is there."}},
		"code is a name":                        {"Set `what: nobody` first.\n", []string{"Set X first."}},
		"a link is its text":                    {"See [the guide](what.md#who).\n", []string{"See [the guide]."}},
		"fenced code is no prose":               {"Run:\n```sh\nwho am i\n```\nThen wait.\n", []string{"Run:", "Then wait."}},
		"comments are no prose":                 {"<!-- what: begin -->\nA text.\n", []string{"A text."}},
		"items":                                 {"* one item\n* another\n  line\n1. third\n", []string{"one item", "another line", "third"}},
		"cells of a table":                      {"| A | B |\n|---|---|\n| one. Two | `a\\|b` three |\n", []string{"A", "B", "one.", "Two", "X three"}},
		"a heading":                             {"## What it does\nIt works.\n", []string{"What it does", "It works."}},
		"an abbreviation ends no sentence":      {"A kind, e.g. Deployment, is named.\n", []string{"A kind, e.g. Deployment, is named."}},
		"a number ends no sentence":             {"Use 1.36. 5 is less.\n", []string{"Use 1.36. 5 is less."}},
		"a sentence that begins with a field":   {"It is set. minReplicas stays.\n", []string{"It is set.", "minReplicas stays."}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(splitMarkdown("page.md", tc.page))); diff != "" {
				t.Errorf("the sentences differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASentenceHasThePlaceOfItsParagraph(t *testing.T) {
	got := splitMarkdown("page.md", "# Title\n\nOne.\n\nTwo\nlines. Three.\n")
	var places []string
	for _, s := range got {
		places = append(places, s.place)
	}
	if diff := cmp.Diff([]string{"page.md:1", "page.md:3", "page.md:5", "page.md:5"}, places); diff != "" {
		t.Errorf("the places differ (-want +got):\n%s", diff)
	}
}

func TestTheChartIsSplitIntoSentences(t *testing.T) {
	tests := map[string]struct {
		split func(file, text string) ([]sentence, error)
		text  string
		want  []string
	}{
		"alerts": {
			splitAlerts,
			"groups: [{rules: [{alert: A, annotations: {summary: It is down., description: '{{ $value }} are down. Wait.', runbook_url: who}}, {record: r}]}]",
			[]string{"It is down.", "X are down.", "Wait."},
		},
		"values": {
			splitValues,
			"# nobody reads this\n# -- One value. It counts.\na: 1\nb:\n  # -- Another value.\n  c: what\n",
			[]string{"One value.", "It counts.", "Another value."},
		},
		"notes": {splitTemplate, "{{- if .Values.who }}\nIt runs in {{ .Release.Namespace }}.\n{{- end }}\n", []string{"X It runs in X.", "X"}},
		"messages of a policy": {
			func(file, text string) ([]sentence, error) { return splitPolicy(file, text), nil },
			"  - expression: what\n    message: one thing is wrong\n  - message: >-\n      another thing\n      is wrong\n    reason: who\n  - messageExpression: >-\n      'the user ' + who + \" is not it\"\n",
			[]string{"one thing is wrong", "another thing is wrong", "the user", "is not it"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tc.split("file.yaml", tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, texts(got)); diff != "" {
				t.Errorf("the sentences differ (-want +got):\n%s", diff)
			}
		})
	}
}

const exampleSource = "package x\n\nimport \"a/b c d e\"\n\n" +
	"// T is a kind.\n// +kubebuilder:validation:XValidation:rule=\"true\",message=\"each key names a variation\"\n" +
	"type T struct {\n\t// name is the name.\n\tName string `json:\"name,omitempty\" a b c d`\n\t// kind of the object.\n\tKind string `json:\"kind\"`\n\tother int\n}\n\n" +
	"var e = fmt.Errorf(\"reading %q of the plan: \"+\n\t\"it is away: %w\", n, err)\nvar s = `One\nparagraph is long.\n\nAnother one is longer.`\nvar short = \"two words\"\n"

func TestGoIsSplitIntoSentences(t *testing.T) {
	file, err := parseGo("x.go", []byte(exampleSource))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ got, want []string }{
		"strings":  {texts(file.strings()), []string{"reading X of the plan: it is away: X", "One paragraph is long.", "Another one is longer."}},
		"messages": {texts(file.messages()), []string{"each key names a variation"}},
		"nameless": {file.nameless(), []string{`x.go:11: the comment of field kind does not begin with "kind" and a verb`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("the sentences differ (-want +got):\n%s", diff)
			}
		})
	}
	if got := texts(file.comments()); len(got) == 0 || got[0] != "T is a kind." {
		t.Errorf("the comments are %q, want them to begin with the kind", got)
	}
}

func TestTextsAreSplitIntoSentences(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"verbs of a format are names":  {"plan %q of %[2]s has %d steps", []string{"plan X of X has X steps"}},
		"quoted words are values":      {`It must be "none" or 'server' today.`, []string{"It must be X or X today."}},
		"a possessive is no quotation": {"the pod's name is the user's", []string{"the pod's name is the user's"}},
		"a name is no text":            {"one two three", nil},
		"what a program reads stays":   {"proof: ClusterSpecGuard g is in force for apps", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(splitText("x.go:1", tc.text))); diff != "" {
				t.Errorf("the sentences differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGoThatCannotBeReadIsAnError(t *testing.T) {
	if _, err := parseGo("x.go", []byte("no go")); err == nil {
		t.Error("parseGo read a text that is not Go")
	}
}
