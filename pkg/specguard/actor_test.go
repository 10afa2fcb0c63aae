// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func TestClassifyAt(t *testing.T) {
	writers := func(w v1alpha1.Writers) func(*v1alpha1.GuardSpec) {
		return func(s *v1alpha1.GuardSpec) { s.TrustedWriters = w }
	}
	expect := func(name, user, path string) func(*v1alpha1.GuardSpec) {
		return func(s *v1alpha1.GuardSpec) {
			s.ExpectedWriters = []v1alpha1.ExpectedWriter{{Name: name, Paths: []string{path}, Writers: v1alpha1.Writers{Users: []string{user}}}}
		}
	}
	ci := Identity{User: testUsers["ci"]}
	tests := map[string]struct {
		rules Rules
		id    Identity
		path  string
		want  v1alpha1.ActorClass
		rule  string
	}{
		"a user by name":                         {rules: rulesOf(t, trust("carol")), id: Identity{User: "carol"}, want: v1alpha1.ActorTrusted},
		"names are exact":                        {rules: rulesOf(t, trust("carol")), id: Identity{User: "Carol"}, want: v1alpha1.ActorUntrusted},
		"a group":                                {rules: rulesOf(t, writers(v1alpha1.Writers{Groups: []string{"release"}})), id: Identity{User: "dan", Groups: []string{"x", "release"}}, want: v1alpha1.ActorTrusted},
		"a service account":                      {rules: rulesOf(t, writers(v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}}})), id: ci, want: v1alpha1.ActorTrusted},
		"another of the same namespace":          {rules: rulesOf(t, writers(v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}}})), id: Identity{User: "system:serviceaccount:ci:other"}, want: v1alpha1.ActorUntrusted},
		"a namespace of service accounts":        {rules: rulesOf(t, writers(v1alpha1.Writers{ServiceAccountNamespaces: []string{"ci"}})), id: ci, want: v1alpha1.ActorTrusted},
		"a user whose name only looks like one":  {rules: rulesOf(t, writers(v1alpha1.Writers{ServiceAccountNamespaces: []string{"ci"}})), id: Identity{User: "system:serviceaccount:ci:"}, want: v1alpha1.ActorUntrusted},
		"nor with one part too many":             {rules: rulesOf(t, writers(v1alpha1.Writers{ServiceAccountNamespaces: []string{"ci"}})), id: Identity{User: "system:serviceaccount:ci:a:b"}, want: v1alpha1.ActorUntrusted},
		"groups of a service account are known":  {rules: rulesOf(t, writers(v1alpha1.Writers{Groups: []string{"system:serviceaccounts:ci"}})), id: ci, want: v1alpha1.ActorTrusted},
		"trusted under every guard":              {rules: rulesOf(t, trust("carol"), trust("carol", "dan")), id: Identity{User: "carol"}, want: v1alpha1.ActorTrusted},
		"trusted under one guard only":           {rules: rulesOf(t, trust("carol"), trust("carol", "dan")), id: Identity{User: "dan"}, want: v1alpha1.ActorUntrusted},
		"expected at his path":                   {rules: rulesOf(t, expect("scaler", "h", "/spec/replicas")), id: Identity{User: "h"}, path: "/spec/replicas", want: v1alpha1.ActorExpected, rule: "scaler"},
		"foreign elsewhere":                      {rules: rulesOf(t, expect("scaler", "h", "/spec/replicas")), id: Identity{User: "h"}, path: "/spec/paused", want: v1alpha1.ActorUntrusted},
		"foreign above his path":                 {rules: rulesOf(t, expect("scaler", "h", "/spec/replicas")), id: Identity{User: "h"}, path: "/spec", want: v1alpha1.ActorUntrusted},
		"expected under one, trusted by another": {rules: rulesOf(t, expect("scaler", "h", "/spec/replicas"), trust("h")), id: Identity{User: "h"}, path: "/spec/replicas", want: v1alpha1.ActorExpected, rule: "scaler"},
		"expected under one, unknown to another": {rules: rulesOf(t, expect("scaler", "h", "/spec/replicas"), trust("carol")), id: Identity{User: "h"}, path: "/spec/replicas", want: v1alpha1.ActorUntrusted},
		"by a wildcard":                          {rules: rulesOf(t, expect("img", "h", "/spec/template/spec/containers/*/image")), id: Identity{User: "h"}, path: "/spec/template/spec/containers/[name=a]/image", want: v1alpha1.ActorExpected, rule: "img"},
		"the garbage collector":                  {rules: rulesOf(t, trust("carol")), id: Identity{User: userGarbageCollector}, want: v1alpha1.ActorSystem},
		"the namespace controller":               {rules: rulesOf(t, trust("carol")), id: Identity{User: userNamespaceController}, want: v1alpha1.ActorSystem},
		"our executor":                           {rules: rulesOf(t, trust("carol")), id: Identity{User: testUsers["executor"]}, want: v1alpha1.ActorSystem},
		"an autoscaler that nobody named":        {rules: rulesOf(t, trust("carol")), id: Identity{User: testUsers["hpa"]}, path: "/spec/replicas", want: v1alpha1.ActorUntrusted},
		"nobody":                                 {rules: rulesOf(t, trust("carol")), want: v1alpha1.ActorUnknown},
		"somebody, without a guard":              {id: ci, want: v1alpha1.ActorUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, rule := tc.rules.ClassifyAt(tc.id, mustPath(t, tc.path))
			if got != tc.want || rule != tc.rule {
				t.Errorf("class %s by rule %q, want %s by %q", got, rule, tc.want, tc.rule)
			}
		})
	}
}

func TestClassifyTakesTheLeastTrusted(t *testing.T) {
	rules := rulesOf(t, func(s *v1alpha1.GuardSpec) { *s = testGuardSpec(); s.Resources = deployments })
	hpa := Identity{User: testUsers["hpa"]}
	replicas, paused := mustPath(t, "/spec/replicas"), mustPath(t, "/spec/paused")
	if got := rules.Classify(hpa, []canon.Path{replicas}); got != v1alpha1.ActorExpected {
		t.Errorf("replicas alone: %s", got)
	}
	if got := rules.Classify(hpa, []canon.Path{replicas, paused}); got != v1alpha1.ActorUntrusted {
		t.Errorf("with another field: %s", got)
	}
	if got := rules.Classify(hpa, nil); got != v1alpha1.ActorUntrusted {
		t.Errorf("the object as a whole: %s", got)
	}
	order := []v1alpha1.ActorClass{v1alpha1.ActorTrusted, v1alpha1.ActorSystem, v1alpha1.ActorExpected, v1alpha1.ActorUnknown, v1alpha1.ActorUntrusted, "unheard of"}
	for i, a := range order {
		for j, b := range order {
			if want := order[max(i, j)]; LeastTrusted(a, b) != want {
				t.Errorf("LeastTrusted(%s, %s) is %s", a, b, LeastTrusted(a, b))
			}
		}
	}
}

func TestParseWriterGroups(t *testing.T) {
	for text, want := range map[string][]string{"": nil, "a": {"a"}, "a,b": {"a", "b"}} {
		if diff := cmp.Diff(want, ParseWriterGroups(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
