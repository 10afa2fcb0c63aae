// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestARuleHoldsOrSaysWhyThatCannotBeTold(t *testing.T) {
	const widget = `{"metadata":{"name":"web","generation":3},"spec":{"size":9007199254740993},"status":{"phase":"Bound","replicas":2,"ratio":0.5,` +
		`"observedGeneration":3,"conditions":[{"type":"Accepted","status":"True","observedGeneration":3},{"type":"Programmed","status":"False"}]}}`
	tests := map[string]struct {
		expression, object string
		want               bool
		fails              string
	}{
		"a field has a value":            {`object.status.phase == 'Bound'`, widget, true, ""},
		"a field has another value":      {`object.status.phase == 'Lost'`, widget, false, ""},
		"a condition is true":            {`object.status.conditions.exists(c, c.type == 'Accepted' && c.status == 'True')`, widget, true, ""},
		"a condition is false":           {`object.status.conditions.exists(c, c.type == 'Programmed' && c.status == 'True')`, widget, false, ""},
		"its controller has seen it":     {`object.status.observedGeneration == object.metadata.generation`, widget, true, ""},
		"no digit is lost":               {`object.spec.size == 9007199254740993`, widget, true, ""},
		"numbers of two sorts":           {`object.status.ratio < 1 && object.status.replicas >= 1.5`, widget, true, ""},
		"a field that may not be there":  {`has(object.status) && has(object.status.phase)`, `{"spec":{}}`, false, ""},
		"an optional field":              {`object.?status.?phase.orValue('') == 'Bound'`, `{"spec":{}}`, false, ""},
		"an hour is one of UTC":          {`timestamp('2026-01-02T03:04:05+02:00').getHours() == 1`, `{}`, true, ""},
		"an expression of 1024 bytes":    {"true" + strings.Repeat(" ", 1020), `{}`, true, ""},
		"an expression of 49 brackets":   {strings.Repeat("(", 49) + "true" + strings.Repeat(")", 49), `{}`, true, ""},
		"always":                         {`true`, `{}`, true, ""},
		"a field that is not there":      {`object.status.phase == 'Bound'`, `{"spec":{}}`, false, "no such key: status"},
		"a value that is no answer":      {`object.status.phase`, widget, false, "the result is a string, not a bool"},
		"an expression that costs a lot": {`[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))`, widget, false, "cost limit exceeded"},
		"what is no object":              {`true`, `[]`, false, "reading the object"},
		"what cannot be read":            {`true`, `{`, false, "reading the object"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program, err := Compile(test.expression)
			if err != nil {
				t.Fatal(err)
			}
			got, err := program.Holds([]byte(test.object))
			if got != test.want || (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("holds: %t, %v; want %t, %q", got, err, test.want, test.fails)
			}
		})
	}
}

func TestAnExpressionThatIsNoRuleIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ expression, want string }{
		"it is no expression":                      {`object.status.phase ==`, "1:23: Syntax error"},
		"it names what is not there":               {`self.status.phase == 'Bound'`, "undeclared reference to 'self'"},
		"it is a text":                             {`'Bound'`, "the result is a string, not a bool"},
		"it is a number":                           {`1 + 1`, "the result is an int, not a bool"},
		"it is nested too deeply":                  {strings.Repeat("(", 50) + "true" + strings.Repeat(")", 50), "recursion limit exceeded"},
		"it is a fraction":                         {`1.5`, "the result is a double, not a bool"},
		"it asks for the time":                     {`now() > timestamp('2026-01-02T03:04:05Z')`, "undeclared reference to 'now'"},
		"it is too long":                           {"true" + strings.Repeat(" ", 1021), "1025 bytes"},
		"it has a regular expression that is none": {`object.status.phase.matches('(')`, "invalid matches argument"},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := Compile(test.expression)
			if program != nil || err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestAnExpressionIsCompiledOnce(t *testing.T) {
	var cache Cache
	first, err := cache.Compile(`object.status.phase == 'Bound'`)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := cache.Compile(`object.status.phase == 'Bound'`); again != first || err != nil {
		t.Errorf("it was compiled again: %v", err)
	}
	_, broken := cache.Compile(`oops`)
	if _, again := cache.Compile(`oops`); broken == nil || !errors.Is(again, broken) {
		t.Errorf("an error is another one the second time: %v, %v", broken, again)
	}
	if again, _ := cache.Compile(`object.status.phase == 'Bound'`); again != first {
		t.Error("it was compiled again after another one")
	}
	for i := range maxPrograms {
		if _, err := cache.Compile("true || " + strings.Repeat("true || ", i%100) + "false" + strings.Repeat(" ", i/100)); err != nil {
			t.Fatal(err)
		}
		if got := len(cache.programs); got > maxPrograms {
			t.Fatalf("%d programs are kept", got)
		}
	}
}

// The reference and the guide have rules that people copy.
func TestTheRulesOfThePagesCompile(t *testing.T) {
	found := 0
	for _, page := range []string{"reference/readiness.md", "guides/remediation.md"} {
		text, err := os.ReadFile(filepath.Join("../../../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
			var defaults v1alpha1.GuardDefaults
			if err := yaml.Unmarshal(block[1], &defaults); err != nil || defaults.Kind != "GuardDefaults" {
				continue
			}
			for _, rule := range defaults.Spec.Readiness {
				found++
				if _, err := Compile(rule.Expression); err != nil {
					t.Errorf("%s: the rule for %s: %v", page, rule.Kind, err)
				}
			}
		}
	}
	if found != 4 {
		t.Errorf("the pages have %d rules", found)
	}
}

func TestTheBoundsOfThePageAreThoseOfTheCode(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/readiness.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("longer than %d bytes", MaxBytes), fmt.Sprintf("costs more than %d", costLimit), v1alpha1.ReasonInvalidExpression} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
