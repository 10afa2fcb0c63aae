// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"pgregory.net/rapid"
)

func backend(name string, weight int32) BackendRef {
	return BackendRef{Kind: "Service", Name: name, Port: 80, Weight: &weight}
}

func routeOf(rules ...Rule) *Route {
	route := &Route{Spec: Spec{Rules: rules}}
	route.Kind, route.Namespace, route.Name, route.ResourceVersion, route.Generation = "HTTPRoute", "shop", "web", "7", 3
	return route
}

func twoBackends(name string) Rule {
	return Rule{Name: name, BackendRefs: []BackendRef{backend("stable", 1), backend("canary", 1)}}
}

var tenPercent = Weights{{"stable", 80}: 9_000, {"canary", 80}: 1_000}

func TestARouteThatDoesNotFitIsRefusedByName(t *testing.T) {
	persistent := twoBackends("main")
	persistent.SessionPersistence = json.RawMessage(`{"type":"Cookie"}`)
	with := func(change func(r *Rule)) []Rule {
		rule := twoBackends("main")
		change(&rule)
		return []Rule{rule}
	}
	for name, tc := range map[string]struct {
		rules []Rule
		rule  string
		want  Reason
		says  string
	}{
		"several rules and no name":     {[]Rule{twoBackends("main"), twoBackends("rest")}, "", ReasonRuleNotNamed, "has 2 rules"},
		"no rule at all":                {nil, "", ReasonRuleNotNamed, "has 0 rules"},
		"a name of no rule":             {[]Rule{twoBackends("main")}, "rest", ReasonRuleNotFound, `no rule "rest"`},
		"a rule without a name":         {[]Rule{twoBackends("")}, "rest", ReasonRuleNotFound, `no rule "rest"`},
		"a rule that keeps sessions":    {[]Rule{persistent}, "", ReasonSessionPersistence, "remove sessionPersistence"},
		"a backend that is missing":     {with(func(r *Rule) { r.BackendRefs = r.BackendRefs[:1] }), "", ReasonBackendsDiffer, "lacks Service canary:80"},
		"a backend of another port":     {with(func(r *Rule) { r.BackendRefs[1].Port = 81; *r.BackendRefs[1].Weight = 0 }), "", ReasonBackendsDiffer, "port 81"},
		"a backend that is there twice": {with(func(r *Rule) { r.BackendRefs = append(r.BackendRefs, backend("canary", 0)) }), "", ReasonBackendsDiffer, "once too often"},
		"another backend with weight":   {with(func(r *Rule) { r.BackendRefs = append(r.BackendRefs, backend("old", 5)) }), "", ReasonOtherBackendHasWeight, "Service old, port 80"},
		"another backend with none":     {with(func(r *Rule) { r.BackendRefs = append(r.BackendRefs, backend("old", 0)) }), "", ReasonBackendsDiffer, "Service old"},
		"another backend by default":    {with(func(r *Rule) { r.BackendRefs = append(r.BackendRefs, BackendRef{Name: "old", Port: 80}) }), "", ReasonOtherBackendHasWeight, "has weight 1"},
		"a backend that is no Service":  {with(func(r *Rule) { r.BackendRefs[1].Kind = "Bucket" }), "", ReasonBackendUnsupported, `Bucket "canary"`},
		"a backend of another group":    {with(func(r *Rule) { r.BackendRefs[1].Group = "example.com" }), "", ReasonBackendUnsupported, "backend 1"},
		"a Service of another tenant":   {with(func(r *Rule) { r.BackendRefs[1].Namespace = "bank" }), "", ReasonBackendUnsupported, "in namespace shop"},
		"filters that differ":           {with(func(r *Rule) { r.BackendRefs[1].Filters = json.RawMessage(`[{"type":"URLRewrite"}]`) }), "", ReasonFiltersDiffer, "canary has other filters"},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := Plan(routeOf(tc.rules...), tc.rule, tenPercent)
			var refusal *RefusalError
			if patch != nil || !errors.As(err, &refusal) || refusal.Reason != tc.want || !strings.Contains(refusal.Text, tc.says) {
				t.Errorf("got %v, %v; want the reason %s and %q", patch, err, tc.want, tc.says)
			}
		})
	}
}

func TestAPatchTestsNamesAndReplacesWeightsAlone(t *testing.T) {
	got, err := Plan(routeOf(twoBackends("other"), twoBackends("main")), "main", Weights{{"stable", 80}: 10_000, {"canary", 80}: 0})
	if err != nil {
		t.Fatal(err)
	}
	want := []Operation{
		{"test", "/metadata/resourceVersion", "7"},
		{"test", "/spec/rules/1/name", "main"},
		{"test", "/spec/rules/1/backendRefs/0/name", "stable"},
		{"test", "/spec/rules/1/backendRefs/1/name", "canary"},
		{"replace", "/spec/rules/1/backendRefs/0/weight", int32(10_000)},
		{"replace", "/spec/rules/1/backendRefs/1/weight", int32(0)},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the patch (-want +got):\n%s", d)
	}
}

func TestEqualFiltersAreNoRefusal(t *testing.T) {
	rule := twoBackends("")
	rule.BackendRefs[0].Filters = json.RawMessage(`[]`)
	if _, err := Plan(routeOf(rule), "", tenPercent); err != nil {
		t.Error(err)
	}
}

// The twin changes the route itself, and the patch changes its JSON.
func TestAPatchedRouteIsTheRouteWithTheWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights, route, at := drawRoute(t)
		before, err := json.Marshal(route)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := Plan(route, fmt.Sprint("rule-", at), weights)
		if err != nil {
			t.Fatal(err)
		}
		for i := range route.Spec.Rules[at].BackendRefs {
			b := &route.Spec.Rules[at].BackendRefs[i]
			*b.Weight = weights[Target{b.Name, b.Port}]
		}
		want, err := json.Marshal(route)
		if err != nil {
			t.Fatal(err)
		}
		got := before
		if patch != nil {
			got = applyPatch(t, before, patch)
		}
		if !jsonpatch.Equal(got, want) {
			t.Errorf("the patched route is\n%s\nwant\n%s", got, want)
		}
		if again, err := Plan(route, fmt.Sprint("rule-", at), weights); again != nil || err != nil {
			t.Errorf("a route with the weights needs %v, %v", again, err)
		}
	})
}

// A route that another writer changed between reading and writing keeps its weights.
func TestAPatchOfAnotherRouteFails(t *testing.T) {
	route := routeOf(twoBackends("main"))
	patch, err := Plan(route, "main", tenPercent)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Route){
		"another version":     func(r *Route) { r.ResourceVersion = "8" },
		"another rule":        func(r *Route) { r.Spec.Rules[0].Name = "rest" },
		"another order":       func(r *Route) { b := r.Spec.Rules[0].BackendRefs; b[0], b[1] = b[1], b[0] },
		"a backend less":      func(r *Route) { r.Spec.Rules[0].BackendRefs = r.Spec.Rules[0].BackendRefs[:1] },
		"a backend was taken": func(r *Route) { r.Spec.Rules[0].BackendRefs[1].Name = "old" },
	} {
		other := routeOf(twoBackends("main"))
		change(other)
		document, err := json.Marshal(other)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decoded(t, patch).Apply(document); err == nil {
			t.Errorf("a route with %s is patched to %s", name, got)
		}
	}
}

func drawRoute(t *rapid.T) (Weights, *Route, int) {
	n := rapid.IntRange(2, 8).Draw(t, "backends")
	weights := Weights{}
	for i := range n {
		weights[Target{fmt.Sprint("service-", i), 80}] = rapid.Int32Range(0, 10_000).Draw(t, "weight")
	}
	rules := make([]Rule, rapid.IntRange(1, 5).Draw(t, "rules"))
	for i := range rules {
		rules[i] = Rule{Name: fmt.Sprint("rule-", i)}
		for _, j := range rapid.Permutation(indexes(n)).Draw(t, "order") {
			rules[i].BackendRefs = append(rules[i].BackendRefs, backend(fmt.Sprint("service-", j), rapid.Int32Range(0, 3).Draw(t, "before")))
		}
	}
	return weights, routeOf(rules...), rapid.IntRange(0, len(rules)-1).Draw(t, "rule")
}

func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func decoded(t rapid.TB, operations []Operation) jsonpatch.Patch {
	raw, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

func applyPatch(t rapid.TB, document []byte, operations []Operation) []byte {
	got, err := decoded(t, operations).Apply(document)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
