// SPDX-License-Identifier: Apache-2.0

package safeguard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

func TestAListIsRead(t *testing.T) {
	got, err := ReadList(strings.NewReader(`# A comment.

A step is done twice.
@ p/p.go
- if done {
- 	return
- }
+

Anybody may write.
# Another one.
@ p/q.go p r
- case !allowed:
+ case false:
= The API server asks, too.
`))
	want := []Entry{
		{Name: "A step is done twice.", File: "p/p.go", Packages: []string{"p"}, Old: "if done {\n\treturn\n}"},
		{
			Name: "Anybody may write.", File: "p/q.go", Packages: []string{"p", "r"},
			Old: "case !allowed:", New: "case false:", Why: "The API server asks, too.",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("list (-want +got):\n%s%v", diff, err)
	}
}

func TestAListWithAMistakeIsAnError(t *testing.T) {
	const good = "A name.\n@ p/p.go\n- a\n+ b\n"
	for name, test := range map[string]struct{ list, want string }{
		"a line without a mark":      {good + "c\n", `paragraph that ends with line 5: "c" has none of the marks @ - + =`},
		"no file":                    {"A name.\n- a\n+ b\n", "paragraph that ends with line 3: it names no file"},
		"no text":                    {"A name.\n@ p/p.go\n+ b\n", "paragraph that ends with line 3: it changes nothing"},
		"a text that stays the same": {"A name.\n@ p/p.go\n- a\n+ a\n", "paragraph that ends with line 4: it changes nothing"},
		"a name that is there twice": {good + "\n" + good, `paragraph that ends with line 9: "A name." is there twice`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ReadList(strings.NewReader(test.list)); err == nil || err.Error() != test.want {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
		})
	}
}

func TestAMutantLacksTheSafeguardAlone(t *testing.T) {
	e := Entry{Name: "A step is done twice.", File: "p/p.go", Old: "if done {\n\treturn\n}", New: "_ = done"}
	const source = "package p\n\nfunc f() {\nif done {\n\treturn\n}\n}\n"
	m, err := e.Mutate([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	want := mutation.Key{File: "p/p.go", Function: e.Name, Number: 1, Old: "if done { return }", New: "_ = done"}
	if diff := cmp.Diff(want, m.Key); diff != "" || m.Line != 4 {
		t.Errorf("line %d, key (-want +got):\n%s", m.Line, diff)
	}
	if diff := cmp.Diff("package p\n\nfunc f() {\n_ = done\n}\n", string(m.Apply([]byte(source)))); diff != "" {
		t.Errorf("source (-want +got):\n%s", diff)
	}
}

func TestAnEntryWhoseTextIsNotThereOnceIsStale(t *testing.T) {
	e := Entry{Name: "Anybody may write.", File: "p/q.go", Old: "case no:", New: "case false:"}
	for source, want := range map[string]string{
		"switch {\ncase yes:\n}":          `p/q.go has the text of "Anybody may write." 0 times, want once`,
		"switch {\ncase no:\ncase no:\n}": `p/q.go has the text of "Anybody may write." 2 times, want once`,
	} {
		if _, err := e.Mutate([]byte(source)); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}
