// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// specHash is the hash of DD-EM-002 of an object's spec.
func specHash(t *testing.T, body string) string {
	t.Helper()
	var object struct{ Spec json.RawMessage }
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatal(err)
	}
	hash, err := canon.HashSpec(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return string(hash)
}

func TestTheHashesOfAnotherSystemAreTakenWhereThePolicyAsks(t *testing.T) {
	type pair struct{ Pre, Post string }
	tests := map[string]struct {
		hashes v1alpha1.EffectHashes
		// lost has the answer to the write lost.
		lost bool
		want func(drifted, left string) pair
	}{
		"where it asks":                     {v1alpha1.HashesDDEM002, false, func(drifted, left string) pair { return pair{drifted, left} }},
		"where the answer is lost":          {v1alpha1.HashesDDEM002, true, func(drifted, left string) pair { return pair{drifted, left} }},
		"where it does not ask":             {"", false, func(string, string) pair { return pair{} }},
		"where it asks for an unknown hash": {"ddem003", false, func(string, string) pair { return pair{} }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Effectiveness.Hashes = tc.hashes })
			w.supersedes()
			drifted := specHash(t, w.targets.body("web"))
			if tc.lost {
				w.targets.lost = on("put", errNetwork)
			}
			if out := w.finish(); !out.Done || w.now().Status.Phase != v1alpha1.PlanSucceeded {
				t.Fatalf("the plan is %s: %s", w.now().Status.Phase, out.Why)
			}
			step := w.now().Status.Steps[0]
			want := tc.want(drifted, specHash(t, w.targets.body("web")))
			if diff := cmp.Diff(want, pair{step.Intent.DDEM002Hash, step.Result.DDEM002Hash}); diff != "" || want.Pre != "" && want.Pre == want.Post {
				t.Errorf("the plan has other hashes (-want +got):\n%s", diff)
			}
			for _, r := range w.recorded() {
				if r.Kind != evidence.KindStep {
					continue
				}
				if diff := cmp.Diff(want, pair{r.Intent.DDEM002Hash, r.Result.DDEM002Hash}); diff != "" {
					t.Errorf("the record has other hashes (-want +got):\n%s", diff)
				}
			}
		})
	}
}
