// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import "strings"

// questionCases are those of the matchers of alerts and of the queries of metrics, which a policy and an
// assessment have.
func questionCases(at string, block func(fields string) string) map[string]specCase {
	matcher := func(fields string) string { return block("alerts: {matchers: [{" + fields + "}]}") }
	query := func(fields string) string {
		return block("metrics: {queries: [{name: errors, objective: LowerIsBetter, " + fields + "}]}")
	}
	nine := ""
	for name := range strings.SplitSeq("abcdefghi", "") {
		nine += "{name: " + name + ", query: up, floor: '1', objective: LowerIsBetter}, "
	}
	const inMatcher, inQuery = ".alerts.matchers[0]", ".metrics.queries[0]"
	return map[string]specCase{
		"a matcher is accepted":                            {spec: matcher("label: service, value: '$(namespace)/$(kind)/$(name)'")},
		"a matcher with a regular expression is accepted":  {spec: matcher("label: service, operator: Matches, value: '($(name)|a)$'")},
		"alerts without a matcher are refused":             {block("alerts: {}"), []string{at + ".alerts.matchers"}, "Required value"},
		"nine matchers are refused":                        {block("alerts: {matchers: [" + strings.Repeat("{label: a, value: b}, ", 9) + "]}"), []string{at + ".alerts.matchers"}, "at most 8"},
		"a label of a matcher with a quote is refused":     {matcher(`label: 'a"', value: b`), []string{at + inMatcher + ".label"}, "should match"},
		"an operator of a matcher that is none is refused": {matcher("label: a, operator: Like, value: b"), []string{at + inMatcher + ".operator"}, "Unsupported value"},
		"an unknown placeholder in a matcher is refused":   {matcher("label: a, value: '$(pods)'"), []string{at + inMatcher + ".value"}, "there are the placeholders $(namespace), $(kind) and $(name)"},
		"a placeholder in a matcher that stays open":       {matcher("label: a, value: '$(name'"), []string{at + inMatcher + ".value"}, "there are the placeholders"},
		"the default metrics are accepted":                 {spec: block("metrics: {}")},
		"a query with each placeholder is accepted":        {spec: query(`query: 'sum(rate(a{ns="$(namespace)",k="$(kind)",n=~"$(name)$"}[$(range)]) * on (namespace, pod) $(pods))', floor: '0.001'`)},
		"a query with an unknown placeholder is refused":   {query("query: '$(canary)', floor: '1'"), []string{at + inQuery + ".query"}, "there are the placeholders $(namespace), $(kind), $(name), $(pods) and $(range)"},
		"a query of more than 1,024 bytes is refused":      {query("query: " + strings.Repeat("a", 1025) + ", floor: '1'"), []string{at + inQuery + ".query"}, "may not be more than 1024"},
		"a query without a floor is refused":               {query("query: up"), []string{at + inQuery + ".floor"}, "Required value"},
		"a floor of 0 is refused":                          {query("query: up, floor: '0.0'"), []string{at + inQuery + ".floor"}, "a floor is positive"},
		"a negative floor is refused":                      {query("query: up, floor: '-1'"), []string{at + inQuery + ".floor"}, "a floor is positive"},
		"an objective that is none is refused":             {block("metrics: {queries: [{name: a, query: up, floor: '1', objective: Higher}]}"), []string{at + inQuery + ".objective"}, "Unsupported value"},
		"two queries of one name are refused":              {block("metrics: {queries: [" + strings.Repeat("{name: a, query: up, floor: '1', objective: LowerIsBetter}, ", 2) + "]}"), []string{at + ".metrics.queries[1]"}, "Duplicate value"},
		"nine queries are refused":                         {block("metrics: {queries: [" + nine + "]}"), []string{at + ".metrics.queries"}, "at most 8"},
	}
}
