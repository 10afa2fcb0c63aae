// SPDX-License-Identifier: Apache-2.0

package placeholder

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var values = []Value{{"namespace", "shop"}, {"kind", "Deployment"}, {"name", "web"}, {"pods", ""}}

func TestExpand(t *testing.T) {
	tests := map[string]struct{ text, want, fault string }{
		"a text without placeholders":        {text: "up", want: "up"},
		"each placeholder":                   {text: "$(namespace)/$(kind)/$(name)", want: "shop/Deployment/web"},
		"an anchor of a regular expression":  {text: `pod=~"a$"`, want: `pod=~"a$"`},
		"an unknown placeholder":             {text: "$(pod)", fault: "unknown placeholder $(pod): there are $(namespace), $(kind), $(name) and $(pods)"},
		"a placeholder that is not closed":   {text: "$(name", fault: "is not closed"},
		"a placeholder that stands for none": {text: "$(pods)", fault: "the value of $(pods) is not a name"},
		"an unknown placeholder that is odd": {text: "$(a\x1b" + strings.Repeat("a", 99) + ")", fault: "unknown placeholder $(a aaa"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Expand(tc.text, values)
			if got != tc.want || (err != nil) != (tc.fault != "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("got %q and %v, want %q and %q", got, err, tc.want, tc.fault)
			}
		})
	}
}

// The naive twin replaces one placeholder after the other.
func TestExpandIsTheSameAsToReplaceEachPlaceholder(t *testing.T) {
	pieces := []string{"$(namespace)", "$(kind)", "$(name)", "up", " ", ")", "$", "$ ("}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), " ")
		want := strings.NewReplacer("$(namespace)", "shop", "$(kind)", "Deployment", "$(name)", "web").Replace(text)
		if got, err := Expand(text, values); err != nil || got != want {
			t.Errorf("%q expands to %q (%v), want %q", text, got, err, want)
		}
	})
}
