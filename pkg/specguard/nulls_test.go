// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

const testRelease = `{"spec":{"values":{"replicas":1,"service":null,"hosts":[{"name":"a","path":null}]}}}`

// releaseWorld has an object of a custom kind, with nulls, that ci created under a guard.
func releaseWorld(t *testing.T) *world {
	w := newWorld(t)
	w.guard("shop", testGuardSpec(), w.now.Add(-1))
	w.kind("helm.example.org/v2", "HelmRelease")
	w.create(write{user: user("ci")}, testRelease)
	w.observe(false, false)
	w.report()
	return w
}

// forgetNulls makes the stored Baseline that of a version which dropped nulls.
func (w *world) forgetNulls() {
	w.t.Helper()
	doc, err := canon.Parse(w.state.Body, canon.GVK{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.state.Body = doc.AppendCanonical(nil)
	old := func(hash *string) { *hash = strings.Replace(*hash, "pl2:", "pl1:", 1) }
	authorized := *w.state.Authorized
	hash := doc.Hash()
	authorized.Hash, w.state.Authorized = string(hash), &authorized
	w.state.Observed.Hash = string(hash)
	old(&w.state.Observed.FullHash)
	w.restart()
}

// M2 of the guard's review: null in a custom kind passed for absence, so a foreign null
// was in sync. In values of a Helm chart, null takes a default away.
func TestANullInACustomKindIsAChange(t *testing.T) {
	for name, tc := range map[string]struct {
		who, write, want string
	}{
		"a foreign null is drift": {
			"mallory", `/spec/values/securityContext = null`,
			"Drifted, revision 1 Created by " + user("ci") + ", hash !=\n  finding /spec/values/securityContext Added Unexpected/Other: - -> null by " + user("mallory"),
		},
		"a null that a foreign writer takes off is drift": {
			"mallory", `/spec/values/service gone`,
			"Drifted, revision 1 Created by " + user("ci") + ", hash !=\n  finding /spec/values/service Removed Other/Other: null -> - by " + user("mallory"),
		},
		"a null inside a list is drift of the list": {
			"mallory", `/spec/values/hosts = [{"name":"a"}]`,
			"Drifted, revision 1 Created by " + user("ci") + ", hash !=\n  finding /spec/values/hosts Changed ",
		},
		"a null of a trusted writer is authorized": {
			"ci", `/spec/values/securityContext = null`,
			"InSync, revision 2 Created by " + user("ci") + ", hash ==\n  effect: store revision 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := releaseWorld(t)
			w.by(tc.who, tc.write)
			if got := w.report(); !strings.HasPrefix(got, tc.want) {
				t.Error(cmp.Diff(tc.want, got))
			}
		})
	}
}

// An upgrade begins with bodies that lack the nulls of their objects.
func TestNullsOfBeforeTheUpgradeAreNoDrift(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(*world)
		want string
	}{
		"of an object that was not written since": {
			func(w *world) { w.forgetNulls() },
			"InSync, revision 2 Created by " + user("ci") + ", hash ==\n  effect: store revision 2\n",
		},
		"of an object whose status was written since": {
			func(w *world) { w.forgetNulls(); w.statusWrite() },
			"InSync, revision 2 Created by " + user("ci") + ", hash ==\n  effect: store revision 2\n",
		},
		"of an object that drifts, whose drift stays": {
			func(w *world) { w.by("mallory", `/spec/values/replicas = 9`); w.forgetNulls() },
			"Drifted, revision 2 Created by " + user("ci") + ", hash !=\n  finding /spec/values/replicas Changed Other/Other: 1 -> 9 by " + user("mallory"),
		},
		"but what was written while no assessor ran is drift": {
			func(w *world) {
				w.forgetNulls()
				w.update(write{user: user("mallory"), changes: parseChanges(w.t, w.live.Body, w.gvk, `/spec/values/tls = null`)})
			},
			"Drifted, revision 1 Created by " + user("ci") + ", hash !=\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := releaseWorld(t)
			tc.play(w)
			w.report()
			w.observe(true, false)
			if got := w.report(); !strings.HasPrefix(got, tc.want) {
				t.Error(cmp.Diff(tc.want, got))
			}
			w.observe(false, false)
			if got, _, _ := strings.Cut(w.report(), "\n"); !strings.HasPrefix(tc.want, got) || strings.Contains(got, "store") {
				t.Errorf("seen once more, it is %s", got)
			}
		})
	}
}

// The executor writes what PutBack says.
func TestNullsArePutBack(t *testing.T) {
	const authorized = `{"spec":{"values":{"service":null,"size":1}}}`
	w := releaseWorld(t)
	for name, object := range map[string]string{
		"a null that was taken off":        `{"metadata":{"name":"x"},"spec":{"values":{"size":1}}}`,
		"a null that became a value":       `{"metadata":{"name":"x"},"spec":{"values":{"service":{"type":"NodePort"},"size":1}}}`,
		"a null that was added":            `{"metadata":{"name":"x"},"spec":{"values":{"service":null,"size":1,"tls":null}}}`,
		"a value that became null":         `{"metadata":{"name":"x"},"spec":{"values":{"service":null,"size":null}}}`,
		"all of what holds a null is gone": `{"metadata":{"name":"x"},"spec":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			changes, err := PutBack([]byte(object), []byte(authorized), w.gvk, w.rules, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, skipped, err := diff.Apply([]byte(object), w.gvk, changes)
			if err != nil || len(skipped) > 0 {
				t.Fatalf("applying %v: skipped %v: %v", changes, skipped, err)
			}
			want := `{"metadata":{"name":"x"},` + authorized[1:]
			if d := cmp.Diff(want, string(got)); d != "" {
				t.Errorf("the object (-want +got):\n%s", d)
			}
		})
	}
}
