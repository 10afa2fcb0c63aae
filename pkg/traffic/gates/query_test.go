// SPDX-License-Identifier: Apache-2.0

package gates_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

var names = gates.Names{Namespace: "shop", Service: "web", Release: "checkout", Canary: "green", Stable: "blue"}

func TestExpand(t *testing.T) {
	tests := map[string]struct{ query, want, fault string }{
		"a query without placeholders":   {query: "up", want: "up"},
		"all placeholders":               {query: `$(namespace) $(service) $(release) $(canary) $(stable)`, want: "shop web checkout green blue"},
		"an anchor of an expression":     {query: `up{pod=~"a$"}`, want: `up{pod=~"a$"}`},
		"a placeholder twice":            {query: `a{v="$(canary)"} / b{v="$(canary)"}`, want: `a{v="green"} / b{v="green"}`},
		"an unknown placeholder":         {query: "up{pod='$(pod)'}", fault: "unknown placeholder $(pod)"},
		"a placeholder that stays open":  {query: "up{pod='$(canary'}", fault: "is not closed"},
		"a placeholder in a placeholder": {query: "$($(canary))", fault: "unknown placeholder"},
		"no name in a placeholder":       {query: "$()", fault: "unknown placeholder $()"},
		"a name in capitals":             {query: "$(Canary)", fault: "unknown placeholder $(Canary)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := gates.Expand(tc.query, names)
			if tc.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("the error is %v, want %q", err, tc.fault)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q and %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestANameThatIsNoneIsNotExpanded(t *testing.T) {
	for _, value := range []string{"", `a"} or vector(1) #`, "a b", "$(stable)", "-a", "a\n", strings.Repeat("a", 254)} {
		if got, err := gates.Expand("$(canary)", gates.Names{Canary: value}); err == nil {
			t.Errorf("%q expands to %q", value, got)
		}
	}
}

// The naive twin replaces one placeholder after the other.
func TestExpandIsTheSameAsToReplaceEachPlaceholder(t *testing.T) {
	pieces := []string{"$(namespace)", "$(service)", "$(release)", "$(canary)", "$(stable)", "up", "{a=~\"x$\"}", " ", ")", "$"}
	rapid.Check(t, func(t *rapid.T) {
		query := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), " ")
		want := strings.NewReplacer("$(namespace)", "shop", "$(service)", "web", "$(release)", "checkout", "$(canary)", "green", "$(stable)", "blue").Replace(query)
		if got, err := gates.Expand(query, names); err != nil || got != want {
			t.Errorf("%q expands to %q (%v), want %q", query, got, err, want)
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"up", "$(canary)", "$(", "$(x)", "a$(stable)b$(stable)", "$$((canary))"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got, err := gates.Expand(query, names)
		if err == nil && strings.Contains(strings.NewReplacer("$(namespace)", "", "$(service)", "", "$(release)", "", "$(canary)", "", "$(stable)", "").Replace(query), "$(") && !strings.Contains(query, "$($(") {
			t.Errorf("%q expands to %q, and has an unknown placeholder", query, got)
		}
	})
}

func TestValidateBoundsTheNumberOfQueries(t *testing.T) {
	var queries []gates.Query
	for i := range gates.MaxQueries {
		queries = append(queries, gates.Query{Name: fmt.Sprint("q", i), PromQL: "up", Maximum: "1", FailureLimit: 1})
	}
	if err := gates.Validate(queries); err != nil {
		t.Errorf("%d queries: %v", len(queries), err)
	}
	if err := gates.Validate(append(queries, gates.Query{})); err == nil || !strings.HasPrefix(err.Error(), "queries: ") {
		t.Errorf("one query more: %v", err)
	}
}

func TestValidate(t *testing.T) {
	good := gates.Query{Name: "errors", PromQL: "up", Maximum: "0.5", FailureLimit: 3}
	tests := map[string]struct {
		edit  func(*gates.Query)
		fault string
	}{
		"a query with a maximum":      {edit: func(*gates.Query) {}},
		"a query with a minimum":      {edit: func(q *gates.Query) { q.Minimum, q.Maximum = "-3", "" }},
		"two bounds that are equal":   {edit: func(q *gates.Query) { q.Minimum = "0.5" }},
		"a query without a name":      {edit: func(q *gates.Query) { q.Name = "" }, fault: "queries[0].name"},
		"a name of the most bytes":    {edit: func(q *gates.Query) { q.Name = strings.Repeat("a", 63) }},
		"a name that is too long":     {edit: func(q *gates.Query) { q.Name = strings.Repeat("a", 64) }, fault: "queries[0].name: 64 bytes"},
		"a query without a text":      {edit: func(q *gates.Query) { q.PromQL = "" }, fault: "queries[0].query"},
		"a query that is too long":    {edit: func(q *gates.Query) { q.PromQL = strings.Repeat("a", 1025) }, fault: "queries[0].query"},
		"an unknown placeholder":      {edit: func(q *gates.Query) { q.PromQL = "$(pod)" }, fault: "queries[0].query: unknown placeholder $(pod)"},
		"no bound":                    {edit: func(q *gates.Query) { q.Maximum = "" }, fault: "queries[0].minimum"},
		"a bound in powers of ten":    {edit: func(q *gates.Query) { q.Maximum = "1e3" }, fault: "queries[0].maximum"},
		"a bound that is no number":   {edit: func(q *gates.Query) { q.Minimum = "NaN" }, fault: "queries[0].minimum"},
		"a minimum above the maximum": {edit: func(q *gates.Query) { q.Minimum = "1" }, fault: "queries[0].minimum: 1 is above"},
		"a limit of no failures":      {edit: func(q *gates.Query) { q.FailureLimit = 0 }, fault: "queries[0].failureLimit"},
		"a limit that is too high":    {edit: func(q *gates.Query) { q.FailureLimit = 101 }, fault: "queries[0].failureLimit"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := good
			tc.edit(&q)
			err := gates.Validate([]gates.Query{q})
			if (err != nil) != (tc.fault != "") || err != nil && !strings.HasPrefix(err.Error(), tc.fault) {
				t.Errorf("the error is %v, want %q", err, tc.fault)
			}
		})
	}
	if err := gates.Validate([]gates.Query{good, good}); err == nil || !strings.Contains(err.Error(), "queries[1].name") {
		t.Errorf("two queries of one name: %v", err)
	}
	if err := gates.Validate(slices.Repeat([]gates.Query{good}, 9)); err == nil {
		t.Error("nine queries are valid")
	}
}
