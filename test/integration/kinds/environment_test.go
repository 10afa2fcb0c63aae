// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

const smallestEnvironment = `{criticality: Production, namespaceSelector: {matchLabels: {env: production}}}`

func TestEnvironment_Fields(t *testing.T) {
	cases := selectorCases("namespaceSelector", "an Environment must say which are its own")
	maps.Copy(cases, environmentCases())
	runSpecCases(t, "Environment", smallestEnvironment, cases)
}

func environmentCases() map[string]specCase {
	weights := func(s string) string { return "componentCriticality: [" + s + "]" }
	graph := func(s string) string { return "dependencies: [" + s + "]" }
	caps := func(s string) string { return "caps: {" + s + "}" }
	return map[string]specCase{
		"the smallest Environment is accepted":             {},
		"criticality Other is accepted":                    {spec: "criticality: Other"},
		"an unknown criticality is refused":                {"criticality: Prod", []string{"spec.criticality"}, `supported values: "Production", "Staging", "Development", "Other"`},
		"no criticality is refused":                        {"criticality: null", []string{"spec.criticality"}, "Required value"},
		"no namespaceSelector is refused":                  {"namespaceSelector: null", []string{"spec.namespaceSelector"}, "Required value"},
		"components from 0 to 100 are accepted":            {spec: weights("{component: api, criticality: 100}, {component: batch, criticality: 0}")},
		"a component above 100 is refused":                 {weights("{component: api, criticality: 101}"), []string{"spec.componentCriticality[0].criticality"}, "should be less than or equal to 100"},
		"a component below 0 is refused":                   {weights("{component: api, criticality: -1}"), []string{"spec.componentCriticality[0].criticality"}, "should be greater than or equal to 0"},
		"a component of half a point is refused":           {weights("{component: api, criticality: 1.5}"), []string{"spec.componentCriticality[0].criticality", "<nil>"}, "must be of type int32"},
		"a component without a weight is refused":          {weights("{component: api}"), []string{"spec.componentCriticality[0].criticality"}, "Required value"},
		"a component without a name is refused":            {weights("{criticality: 1}"), []string{"spec.componentCriticality[0].component"}, "Required value"},
		"a component of 1 MiB is refused":                  {weights("{component: " + strings.Repeat("c", 1<<20) + ", criticality: 1}"), []string{"spec.componentCriticality[0].component"}, "may not be more than 253"},
		"the same component twice is refused":              {weights("{component: a, criticality: 1}, {component: a, criticality: 2}"), []string{"spec.componentCriticality[1]"}, "Duplicate value"},
		"too many components are refused":                  {weights(repeat(513, "{component: c%d, criticality: 1}")), []string{"spec.componentCriticality"}, "must have at most 512 items"},
		"a graph with a cycle is accepted":                 {spec: graph("{component: a, dependsOn: [b]}, {component: b, dependsOn: [a]}")},
		"a component that needs nothing is refused":        {graph("{component: a, dependsOn: []}"), []string{"spec.dependencies[0].dependsOn"}, "should have at least 1 items"},
		"too many dependencies are refused":                {graph("{component: a, dependsOn: [" + repeat(65, "c%d") + "]}"), []string{"spec.dependencies[0].dependsOn"}, "must have at most 64 items"},
		"a dependency without a name is refused":           {graph("{component: a, dependsOn: ['']}"), []string{"spec.dependencies[0].dependsOn[0]"}, "should be at least 1 chars"},
		"caps of zero allow nothing and are accepted":      {spec: caps("maxConcurrent: 0, maxPerHour: 0, maxPerDay: 0")},
		"a negative cap is refused":                        {caps("maxConcurrent: -1"), []string{"spec.caps.maxConcurrent"}, "should be greater than or equal to 0"},
		"a cap beyond its bound is refused":                {caps("maxConcurrent: 1001"), []string{"spec.caps.maxConcurrent"}, "should be less than or equal to 1000"},
		"an hour beyond its bound is refused":              {caps("maxPerHour: 100001"), []string{"spec.caps.maxPerHour"}, "should be less than or equal to 100000"},
		"a day beyond its bound is refused":                {caps("maxPerDay: 1000001"), []string{"spec.caps.maxPerDay"}, "should be less than or equal to 1000000"},
		"an hour that allows more than its day is refused": {caps("maxPerHour: 11, maxPerDay: 10"), []string{"spec.caps.maxPerHour"}, "maxPerHour is more than maxPerDay"},
		"an hour that allows as much as its day, accepted": {spec: caps("maxPerHour: 10, maxPerDay: 10")},
	}
}

func TestGuardDefaults_Fields(t *testing.T) {
	defaults := func(s string) string { return "defaults: {" + s + "}" }
	kinds := func(s string) string { return "kinds: [" + s + "]" }
	readiness := func(s string) string { return "readiness: [" + s + "]" }
	cases := map[string]specCase{
		"empty defaults are accepted":                   {},
		"defaults of an Environment are accepted":       {spec: "environmentName: production"},
		"an Environment with a space is refused":        {"environmentName: 'pro duction'", []string{"spec.environmentName"}, "should match"},
		"an empty Environment is refused":               {"environmentName: ''", []string{"spec.environmentName"}, "should be at least 1 chars"},
		"everything set is accepted":                    {spec: "{driftThreshold: '100%', " + defaults("resyncPeriod: 3h, recheckInterval: 5m, managementPolicy: Unmanaged") + "}"},
		"checks switched off are accepted":              {spec: defaults("resyncPeriod: 0s")},
		"a negative resyncPeriod is refused":            {defaults("resyncPeriod: -1h"), []string{"spec.defaults.resyncPeriod"}, "from 1s to 8760h"},
		"a recheckInterval of never is refused":         {defaults("recheckInterval: 0s"), []string{"spec.defaults.recheckInterval"}, "from 1s to 24h"},
		"a recheckInterval beyond a day is refused":     {defaults("recheckInterval: 24h1s"), []string{"spec.defaults.recheckInterval"}, "from 1s to 24h"},
		"an unknown managementPolicy is refused":        {defaults("managementPolicy: managed"), []string{"spec.defaults.managementPolicy"}, "Unsupported value"},
		"an override of one kind is accepted":           {spec: kinds("{apiVersion: apps/v1, kind: Deployment, resyncPeriod: 30m}")},
		"an override of Secrets is refused":             {kinds("{apiVersion: v1, kind: Secret}"), []string{"spec.kinds[0].kind"}, "Secrets are never guarded"},
		"an override of a cluster-scoped kind, refused": {kinds("{apiVersion: v1, kind: Node}"), []string{"spec.kinds[0].kind"}, "not a core kind"},
		"an override with a bad duration is refused":    {kinds("{apiVersion: apps/v1, kind: Deployment, resyncPeriod: 1d}"), []string{"spec.kinds[0].resyncPeriod"}, "from 1s to 8760h"},
		"an override without a kind is refused":         {kinds("{apiVersion: apps/v1}"), []string{"spec.kinds[0].kind"}, "Required value"},
		"two overrides of one kind are refused":         {kinds("{apiVersion: apps/v1, kind: Deployment}, {apiVersion: apps/v1, kind: Deployment}"), []string{"spec.kinds[1]"}, "Duplicate value"},
		"too many overrides are refused":                {kinds(repeat(33, "{apiVersion: example.com/v1, kind: K%d}")), []string{"spec.kinds"}, "must have at most 32 items"},
		"a readiness rule is accepted":                  {spec: readiness("{apiGroup: shop.example, kind: Basket, expression: object.status.phase == 'Bound'}")},
		"a readiness rule of the core group, accepted":  {spec: readiness("{apiGroup: '', kind: PersistentVolumeClaim, expression: 'true'}")},
		"a readiness rule without a group is refused":   {readiness("{kind: Basket, expression: 'true'}"), []string{"spec.readiness[0].apiGroup"}, "Required value"},
		"a readiness rule for a version is refused":     {readiness("{apiGroup: shop.example/v1, kind: Basket, expression: 'true'}"), []string{"spec.readiness[0].apiGroup"}, "should match"},
		"a readiness rule without a kind is refused":    {readiness("{apiGroup: shop.example, expression: 'true'}"), []string{"spec.readiness[0].kind"}, "Required value"},
		"a readiness rule that says nothing is refused": {readiness("{apiGroup: shop.example, kind: Basket, expression: ''}"), []string{"spec.readiness[0].expression"}, "at least 1 chars"},
		"an expression beyond its bound is refused": {
			readiness("{apiGroup: shop.example, kind: Basket, expression: '" + strings.Repeat("x", 1025) + "'}"), []string{"spec.readiness[0].expression"}, "may not be more than 1024",
		},
		"two readiness rules for one kind are refused": {
			readiness("{apiGroup: a.b, kind: K, expression: 'true'}, {apiGroup: a.b, kind: K, expression: 'false'}"), []string{"spec.readiness[1]"}, "Duplicate value",
		},
		"too many readiness rules are refused": {readiness(repeat(33, "{apiGroup: a.b, kind: K%d, expression: 'true'}")), []string{"spec.readiness"}, "must have at most 32 items"},
	}
	for _, threshold := range []string{"1%", "9%", "10%", "99%", "100%", "0.01", "0.2", "0.99", "1", "1.0"} {
		cases["driftThreshold "+threshold+" is accepted"] = specCase{spec: fmt.Sprintf("driftThreshold: %q", threshold)}
	}
	for _, threshold := range []string{"0%", "10", "101%", "05%", "-1%", "1.5%", "%%", "0", "0.0", "1.5", "2", ".5"} {
		cases["driftThreshold "+threshold+" is refused"] = specCase{fmt.Sprintf("driftThreshold: %q", threshold), []string{"spec.driftThreshold"}, "a percentage from 1% to 100%, or a fraction from 0.01 to 1"}
	}
	runSpecCases(t, "GuardDefaults", "{}", cases)
}
