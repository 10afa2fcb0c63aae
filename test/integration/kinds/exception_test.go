// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"maps"
	"strings"
	"testing"
)

const smallestException = `{resources: [{apiVersion: apps/v1, kind: Deployment}], paths: [/spec/replicas], endTime: "2026-01-02T03:04:05Z", ticket: OPS-1, requestedBy: olga}`

func TestSpecGuardException_Fields(t *testing.T) {
	cases := resourceCases(16)
	maps.Copy(cases, pointerCases("paths", "spec.paths"))
	maps.Copy(cases, specGuardExceptionCases())
	for name, tc := range cases { // of guards, for which paths are optional
		if strings.HasPrefix(name, "no paths") || strings.Contains(tc.spec, "paths: []") {
			delete(cases, name)
		}
	}
	runSpecCases(t, "SpecGuardException", smallestException, cases)
}

func specGuardExceptionCases() map[string]specCase {
	return map[string]specCase{
		"the smallest exception is accepted":          {},
		"an exception of a category is accepted":      {spec: "{resources: null, categories: [Workloads]}"},
		"an exception without kinds is refused":       {"resources: []", []string{"spec.resources"}, "name at least one kind in resources, or one category in categories"},
		"an unknown category is refused":              {"categories: [All]", []string{"spec.categories[0]"}, "Unsupported value"},
		"an exception without paths is refused":       {"paths: null", []string{"spec.paths"}, "Required value"},
		"an exception for one writer is accepted":     {spec: "writers: {users: [olga]}"},
		"an empty list of writers is refused":         {"writers: {}", []string{"spec.writers"}, "an empty list would let no writer change the fields"},
		"an exception without an end is refused":      {"endTime: null", []string{"spec.endTime"}, "Required value"},
		"an end that is no time is refused":           {"endTime: tomorrow", []string{"spec.endTime"}, "must be of type date-time"},
		"an exception without a ticket is refused":    {"ticket: null", []string{"spec.ticket"}, "Required value"},
		"a ticket with control characters is refused": {`ticket: "OPS\n1"`, []string{"spec.ticket"}, "should match"},
		"a ticket of 257 characters is refused":       {"ticket: " + strings.Repeat("a", 257), []string{"spec.ticket"}, "may not be more than 256"},
		"an exception without its author is refused":  {"requestedBy: null", []string{"spec.requestedBy"}, "Required value"},
		"names of objects are accepted":               {spec: "names: [web, system:web.1]"},
		"a name in capitals is refused":               {"names: [Web]", []string{"spec.names[0]"}, "should match"},
		"a name twice is refused":                     {"names: [web, web]", []string{"spec.names[1]"}, "Duplicate value"},
		"too many names are refused":                  {"names: [" + repeat(65, "n%d") + "]", []string{"spec.names"}, "must have at most 64 items"},
	}
}
