// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func TestBreakGlassReason(t *testing.T) {
	tests := map[string]struct{ before, after, want string }{
		"none":                              {"", "", ""},
		"the first":                         {"", "incident 7", "incident 7"},
		"another":                           {"incident 7", "incident 8", "incident 8"},
		"one of an earlier write":           {"incident 7", "incident 7", ""},
		"taken off":                         {"incident 7", "", ""},
		"the longest":                       {"", strings.Repeat("é", 512), strings.Repeat("é", 512)},
		"one that is longer is cut":         {"", strings.Repeat("é", 513), strings.Repeat("é", 512)},
		"what is no text stays bounded too": {"", strings.Repeat("\xff", 600), strings.Repeat("\uFFFD", 512)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, BreakGlassReason(test.before, test.after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAReasonCountsForOneWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reasons := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b"}), 1, 20).Draw(t, "reasons")
		before := ""
		for _, now := range reasons {
			got := BreakGlassReason(before, now)
			if (got != "") != (now != "" && now != before) || got != "" && got != now || utf8.RuneCountInString(got) > maxReasonCharacters {
				t.Fatalf("%q after %q counts as %q", now, before, got)
			}
			before = now
		}
	})
}

// denying are rules of a ClusterSpecGuard that denies and trusts ci.
func denying(t *testing.T, mode v1alpha1.GuardMode) Rules {
	t.Helper()
	spec := v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}, Mode: mode}
	spec.TrustedWriters.Users = []string{"ci"}
	g, errs := Compile(GuardRef{Name: "g"}, spec, nil, testNow)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return NewGuardSet([]*Guard{g}, nil, System{}).Rules(Query{Namespace: "shop", GVK: canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}, Now: testNow})
}

// TestAReasonIsRecorded follows one object: ci creates it, alice breaks the
// glass, and then she changes it again, which a dead policy let through.
func TestAReasonIsRecorded(t *testing.T) {
	body := func(paused, image string) []byte {
		return []byte(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"paused":` + paused + `,"image":"` + image + `"}}`)
	}
	created := Version{Body: body("false", "1"), ResourceVersion: "1", Generation: 1, Writer: "ci"}
	broken := Version{Body: body("true", "1"), ResourceVersion: "2", Generation: 2, Writer: "alice", BreakGlassReason: "incident 7"}
	again := Version{Body: body("true", "2"), ResourceVersion: "3", Generation: 3, Writer: "alice", BreakGlassReason: "incident 7"}
	tests := map[string]struct {
		mode   v1alpha1.GuardMode
		writes []Version
		want   map[string]string // reason by path
		events int
	}{
		"the write that gave it":              {v1alpha1.GuardModeDeny, []Version{created, broken}, map[string]string{"/spec/paused": "incident 7"}, 1},
		"a later write is not covered by it":  {v1alpha1.GuardModeDeny, []Version{created, broken, again}, map[string]string{"/spec/paused": "incident 7", "/spec/image": ""}, 1},
		"where nobody checks it is no reason": {v1alpha1.GuardModeWarn, []Version{created, broken}, map[string]string{"/spec/paused": ""}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			st := State{Name: "deployments.apps.web", Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
			events := 0
			for i := range test.writes {
				o := Present{Version: test.writes[i], UID: "u", CreatedAt: testNow, Created: i == 0}
				if i > 0 {
					o.Prev = &test.writes[i-1]
				}
				r, err := Step(Input{State: st, Observation: o, Rules: denying(t, test.mode), Now: testNow, Stamps: (&stampPolicy{inForce: true}).stamps(o), Config: Config{Key: []byte("0123456789abcdef")}})
				if err != nil {
					t.Fatal(err)
				}
				st = r.State
				for _, e := range r.Effects {
					if event, ok := e.(Event); ok && event.Reason == ReasonBreakGlass {
						events++
						if event.Message != "alice (untrusted) went past a guard that denies: incident 7" {
							t.Errorf("event: %s", event.Message)
						}
					}
				}
			}
			got := map[string]string{}
			for _, f := range st.Findings {
				got[f.Path] = f.Actor.BreakGlassReason
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			if events != test.events {
				t.Errorf("%d events, want %d", events, test.events)
			}
		})
	}
}

func TestDenyCompilesForClusterGuardsOnly(t *testing.T) {
	spec := v1alpha1.GuardSpec{Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}, Mode: v1alpha1.GuardModeDeny}
	if _, errs := Compile(GuardRef{Name: "g"}, spec, nil, testNow); len(errs) > 0 {
		t.Errorf("a cluster guard: %v", errs)
	}
	if g, errs := Compile(GuardRef{Namespace: "shop", Name: "g"}, spec, nil, testNow); g != nil || len(errs) != 1 || errs[0].Field != "spec.mode" {
		t.Errorf("a guard of a namespace: %v, %v", g, errs)
	}
	if rules := denying(t, v1alpha1.GuardModeDeny); !rules.Denies() || rules.Mode() != v1alpha1.GuardModeWarn {
		t.Errorf("denies %t, mode %s", rules.Denies(), rules.Mode())
	}
	if rules := denying(t, v1alpha1.GuardModeAudit); rules.Denies() || rules.Mode() != v1alpha1.GuardModeAudit {
		t.Errorf("a guard that audits denies %t, mode %s", rules.Denies(), rules.Mode())
	}
}
