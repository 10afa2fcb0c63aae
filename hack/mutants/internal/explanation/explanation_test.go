// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/explanation"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

func TestExplanationsAreReadByTheirKeys(t *testing.T) {
	set, err := explanation.ReadSet(strings.NewReader(`# a comment

pkg/p/p.go T.do
- const limit = 3
+ const limit = 4
= The limit is a matter of taste.

pkg/p/p.go f #2
- g()
+ (dropped)
= The second call finds the work done.`))
	if err != nil {
		t.Fatal(err)
	}
	want := explanation.Set{
		{File: "pkg/p/p.go", Function: "T.do", Old: "const limit = 3", New: "const limit = 4", Number: 1}: "The limit is a matter of taste.",
		{File: "pkg/p/p.go", Function: "f", Old: "g()", New: "(dropped)", Number: 2}:                      "The second call finds the work done.",
	}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("explanations (-want +got):\n%s", diff)
	}
}

func TestAParagraphThatIsNotWellFormedIsAnError(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"without a reason":        {"p.go f\n- a\n+ b\n\n", "line 3: a paragraph has four lines, this one has 3"},
		"with an empty reason":    {"p.go f\n- a\n+ b\n= ", `last paragraph: line 4 of a paragraph begins with "= " and a text`},
		"without a function":      {"p.go\n- a\n+ b\n= c", "last paragraph: a paragraph begins with a file and a function"},
		"with a wrong number":     {"p.go f #x\n- a\n+ b\n= c", `last paragraph: parsing the number of the mutant: strconv.Atoi: parsing "x": invalid syntax`},
		"without the old lines":   {"p.go f\n+ a\n+ b\n= c", `last paragraph: line 2 of a paragraph begins with "- " and a text`},
		"about the same mutant":   {"p.go f\n- a\n+ b\n= c\n\np.go f #1\n- a\n+ b\n= d", "last paragraph: p.go: f: a => b is explained twice"},
		"with two in one of them": {"p.go f\n- a\n+ b\n= c\np.go f #2\n- a\n+ b\n= d\n\n", "line 8: a paragraph has four lines, this one has 8"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := explanation.ReadSet(strings.NewReader(tc.text))
			if err == nil || err.Error() != tc.want {
				t.Errorf("the error is %v, want %s; the set is %v", err, tc.want, set)
			}
		})
	}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	word := rapid.StringMatching(`[a-z(){}&|]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		want := explanation.Set{}
		for range rapid.IntRange(0, 5).Draw(t, "count") {
			key := mutation.Key{
				File: word.Draw(t, "file"), Function: word.Draw(t, "function"), Number: rapid.IntRange(1, 3).Draw(t, "number"),
				Old: word.Draw(t, "old") + " " + word.Draw(t, "old"), New: word.Draw(t, "new"),
			}
			want[key] = word.Draw(t, "why")
		}
		var text bytes.Buffer
		for key, why := range want {
			if err := explanation.WriteParagraph(&text, key, why); err != nil {
				t.Fatal(err)
			}
		}
		got, err := explanation.ReadSet(&text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-written +read):\n%s", diff)
		}
	})
}
