// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"fmt"
	"strings"
	"testing"
)

const smallestStrategy = `{stages: [{trafficPercentage: 100, duration: 0s}]}`

// queries of a strategy, each with these fields beside its name and text.
func queries(each ...string) string {
	var list []string
	for i, fields := range each {
		list = append(list, fmt.Sprintf("{name: q%d, query: up%s}", i, fields))
	}
	return "queries: [" + strings.Join(list, ", ") + "]"
}

func TestRolloutStrategy_Queries(t *testing.T) {
	const at = "spec.queries"
	bound := `, maximum: "0.5"`
	runSpecCases(t, "RolloutStrategy", smallestStrategy, map[string]specCase{
		"the smallest strategy is accepted":         {},
		"a maximum is accepted":                     {spec: queries(bound)},
		"a minimum below zero is accepted":          {spec: queries(`, minimum: "-0.25", failureLimit: 100`)},
		"two bounds that are equal are accepted":    {spec: queries(`, minimum: "1", maximum: "1.0"`)},
		"eight queries are accepted":                {spec: queries(bound, bound, bound, bound, bound, bound, bound, bound)},
		"nine queries are refused":                  {queries(bound, bound, bound, bound, bound, bound, bound, bound, bound), []string{at}, "must have at most 8"},
		"no bound is refused":                       {queries(""), []string{at + "[0]"}, "a minimum, a maximum, or both"},
		"a minimum above the maximum is refused":    {queries(`, minimum: "2", maximum: "1"`), []string{at + "[0].minimum"}, "the minimum is at most the maximum"},
		"a bound in powers of ten is refused":       {queries(`, maximum: "1e3"`), []string{at + "[0].maximum"}, "should match"},
		"a limit of no failures is refused":         {queries(bound + ", failureLimit: -1"), []string{at + "[0].failureLimit"}, "greater than or equal to 1"},
		"two queries of one name are refused":       {"queries: [{name: a, query: up, minimum: '1'}, {name: a, query: up, minimum: '1'}]", []string{at + "[1]"}, "Duplicate value"},
		"a text of more than 1024 bytes is refused": {"queries: [{name: a, minimum: '1', query: " + strings.Repeat("u", 1025) + "}]", []string{at + "[0].query"}, "may not be more than 1024"},
		"a name with a blank is refused":            {"queries: [{name: a b, minimum: '1', query: up}]", []string{at + "[0].name"}, "should match"},
	})
}

func TestABRelease_CohortCheck(t *testing.T) {
	const at = "spec.rollout.analysis.cohortCheck"
	check := func(duration string) string {
		return "rollout: {strategyName: a, analysis: {cohortCheck: " + duration + "}}"
	}
	runSpecCases(t, "ABRelease", strings.Replace(smallestRelease, "{stable: 90, canary: 10}", "{stable: 100, canary: 0}", 1), map[string]specCase{
		"ten seconds are accepted":   {spec: check("10s")},
		"a day is accepted":          {spec: check("24h")},
		"no check is accepted":       {spec: check("0s")},
		"nine seconds are refused":   {check("9s"), []string{at}, "from 10s to 24h"},
		"two days are refused":       {check("48h"), []string{at}, "from 10s to 24h"},
		"a number alone is refused":  {check("300"), []string{at}, "must be of type string"},
		"what is no time is refused": {check("soon"), []string{at}, "from 10s to 24h"},
	})
}

func TestABRelease_Gates(t *testing.T) {
	const at = "spec.rollout.gates.webhooks"
	webhooks := func(list string) string {
		return "rollout: {strategyName: a, gates: {webhooks: [" + list + "]}}"
	}
	const secrets = "destination: {name: hook, key: url}, signingKey: {name: hook, key: key}"
	var nine []string
	for i := range 9 {
		nine = append(nine, fmt.Sprintf("{name: w%d, event: BeforeStart, %s}", i, secrets))
	}
	runSpecCases(t, "ABRelease", strings.Replace(smallestRelease, "{stable: 90, canary: 10}", "{stable: 100, canary: 0}", 1), map[string]specCase{
		"a webhook is accepted":                {spec: webhooks("{name: a, event: BeforePromotion, " + secrets + "}")},
		"eight webhooks are accepted":          {spec: webhooks(strings.Join(nine[:8], ", "))},
		"nine webhooks are refused":            {webhooks(strings.Join(nine, ", ")), []string{at}, "must have at most 8"},
		"an event that is none is refused":     {webhooks("{name: a, event: AfterStart, " + secrets + "}"), []string{at + "[0].event"}, "Unsupported value"},
		"a webhook without a key is refused":   {webhooks("{name: a, event: BeforeStart, destination: {name: hook, key: url}}"), []string{at + "[0].signingKey"}, "Required value"},
		"two webhooks of one name are refused": {webhooks("{name: a, event: BeforeStart, " + secrets + "}, {name: a, event: BeforeStage, " + secrets + "}"), []string{at + "[1]"}, "Duplicate value"},
		"a query of its own is accepted":       {spec: "rollout: {strategy: {stages: [{trafficPercentage: 100, duration: 0s}], " + queries(`, maximum: "1"`) + "}}"},
	})
}
