// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var productOfADeployment = set("metadata.ownerReferences", []any{
	map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "x", "controller": true},
})

// C1 of the guard's review: an owner switched the stamp and the record off.
func TestAnOwnerMakesNoDifferenceWhereTheWebhookStampsTheWriter(t *testing.T) {
	old := deployment(t, productOfADeployment, annotations(writerKey, ci))
	tests := map[string]struct {
		review  *admission.Review
		writer  string
		records int
	}{
		"a creation with a forged stamp":           {create(alice, deployment(t, productOfADeployment, annotations(writerKey, ci))), alice, 1},
		"a change under the stamp of before":       {update(alice, deployment(t, productOfADeployment, annotations(writerKey, ci), image("evil:1")), old), alice, 1},
		"a stamp that is taken off":                {update(alice, deployment(t, productOfADeployment), old), ci, 0},
		"an owner that is taken off with a change": {update(alice, deployment(t, annotations(writerKey, ci), image("evil:1")), old), alice, 1},
		"a controller that makes its product":      {create("system:serviceaccount:kube-system:deployment-controller", deployment(t, productOfADeployment)), "system:serviceaccount:kube-system:deployment-controller", 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reviewer, rec := newReviewer(t, func(s *v1alpha1.GuardSpec) { s.Resources[0].Kind = "ReplicaSet" })
			reviewer.StampWriter = true
			tc.review.Kind.Kind = "ReplicaSet"
			stamped := patched(t, tc.review.Object, reviewer.Mutate(tc.review))
			want := map[string]string{hashKey: hashOf(t, tc.review.Object), writerKey: tc.writer}
			if diff := cmp.Diff(want, annotationsOf(t, stamped)); diff != "" {
				t.Errorf("annotations (-want +got)\n%s", diff)
			}
			tc.review.Object = stamped
			if a := reviewer.Validate(tc.review); a.Verdict != VerdictNotRoot || len(a.Warnings) != 0 {
				t.Errorf("verdict %q, warnings %q", a.Verdict, a.Warnings)
			}
			if len(rec.records) != tc.records {
				t.Fatalf("records %+v, want %d", rec.records, tc.records)
			}
			for _, r := range rec.records {
				if r.User != tc.writer || r.HashAfter != hashOf(t, stamped) {
					t.Errorf("record %+v, want one of %s", r, tc.writer)
				}
			}
		})
	}
	t.Run("a deletion, which no stamp is left of", func(t *testing.T) {
		reviewer, rec := newReviewer(t, func(s *v1alpha1.GuardSpec) { s.Resources[0].Kind = "ReplicaSet" })
		reviewer.StampWriter = true
		r := deletion(alice, old)
		r.Kind.Kind = "ReplicaSet"
		if a := reviewer.Validate(r); a.Verdict != VerdictNotRoot || len(rec.records) != 0 {
			t.Errorf("verdict %q, records %+v", a.Verdict, rec.records)
		}
	})
}

// The stamp of before would name its writer for what nobody looked at.
func TestAnUnguardedObjectKeepsNoStampOfTheWebhook(t *testing.T) {
	labeled := func(s *v1alpha1.GuardSpec) { s.Selector = metaSelector("guarded", "yes") }
	otherKind := func(s *v1alpha1.GuardSpec) { s.Resources[0].Kind = "StatefulSet" }
	stamps := []string{writerKey, ci, groupsKey, "ops", hashKey, "pl1:sha256:00", "a/b", "c"}
	tests := map[string]struct {
		guard       func(*v1alpha1.GuardSpec)
		stampWriter bool
		review      *admission.Review
		want        map[string]string
	}{
		"a label that was taken off in an earlier write": {
			labeled, true, update(alice, deployment(t, annotations(stamps...), image("evil:1")), deployment(t, annotations(stamps...))),
			map[string]string{hashKey: "pl1:sha256:00", "a/b": "c"},
		},
		"a creation before the label":        {labeled, true, create(alice, deployment(t, annotations(writerKey, ci))), map[string]string{}},
		"a kind that no guard names":         {otherKind, true, create(alice, deployment(t, annotations(writerKey, ci))), map[string]string{}},
		"groups alone":                       {labeled, true, create(alice, deployment(t, annotations(groupsKey, "ops"))), map[string]string{}},
		"nothing to take off":                {labeled, true, create(alice, deployment(t, annotations("a/b", "c"))), map[string]string{"a/b": "c"}},
		"the stamp of the in-process policy": {labeled, false, create(alice, deployment(t, annotations(writerKey, alice))), map[string]string{writerKey: alice}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reviewer, rec := newReviewer(t, tc.guard)
			reviewer.StampWriter = tc.stampWriter
			answer := reviewer.Mutate(tc.review)
			if answer.Verdict != VerdictUnguarded || len(rec.records) != 0 {
				t.Errorf("verdict %q (%v), records %+v", answer.Verdict, answer.Err, rec.records)
			}
			if diff := cmp.Diff(tc.want, annotationsOf(t, patched(t, tc.review.Object, answer))); diff != "" {
				t.Errorf("annotations (-want +got)\n%s", diff)
			}
		})
	}
}
