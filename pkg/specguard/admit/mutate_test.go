// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// patched applies an answer as the API server does.
func patched(t testing.TB, object []byte, a admission.Answer) []byte {
	t.Helper()
	if a.Patch == nil {
		return object
	}
	patch, err := jsonpatch.DecodePatch(a.Patch)
	if err != nil {
		t.Fatalf("patch %s: %v", a.Patch, err)
	}
	out, err := patch.Apply(object)
	if err != nil {
		t.Fatalf("applying %s: %v", a.Patch, err)
	}
	return out
}

func annotationsOf(t testing.TB, object []byte) map[string]string {
	t.Helper()
	var o struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &o); err != nil {
		t.Fatal(err)
	}
	return o.Metadata.Annotations
}

func hashOf(t testing.TB, object []byte) string {
	t.Helper()
	h, err := canon.HashBody(object, deploymentGVK)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

const (
	hashKey   = v1alpha1.AnnotationSpecHash
	writerKey = v1alpha1.AnnotationWriter
	groupsKey = v1alpha1.AnnotationWriterGroups
)

func TestTheHashIsStamped(t *testing.T) {
	plain := deployment(t)
	tests := map[string]struct {
		review *admission.Review
		want   map[string]string // beside the hash
	}{
		"on a new object without annotations": {review: create(alice, plain)},
		"on a new object with a null map":     {review: create(alice, deployment(t, func(o map[string]any) { o["metadata"].(map[string]any)["annotations"] = nil }))},
		"on a new object with an empty map":   {review: create(alice, deployment(t, annotations()))},
		"beside the annotations that are there": {
			review: create(alice, deployment(t, annotations("a/b", "c~d"))), want: map[string]string{"a/b": "c~d"},
		},
		"on a new object without a name (generateName)": {
			review: create(alice, deployment(t, set("metadata.name", nil), set("metadata.uid", nil), set("metadata.generateName", "web-"))),
		},
		"over a forged one": {review: update(alice, deployment(t, annotations(hashKey, "pl1:sha256:00")), plain)},
		"again on a PUT whose body leaves it out": {
			review: update(alice, deployment(t, set("metadata.uid", nil)), deployment(t, annotations(hashKey, hashOf(t, plain), "x", "y"))),
		},
		"over the one that rollout undo replays": {
			review: update(alice, deployment(t, image("shop/web:1"), annotations(hashKey, "pl1:sha256:0ld")), deployment(t, image("shop/web:2"), annotations(hashKey, "pl1:sha256:new"))),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reviewer, rec := newReviewer(t, nil)
			answer := reviewer.Mutate(tc.review)
			if answer.Patch == nil {
				t.Fatalf("no patch, verdict %q (%v)", answer.Verdict, answer.Err)
			}
			after := patched(t, tc.review.Object, answer)
			want := map[string]string{hashKey: hashOf(t, tc.review.Object)}
			maps.Copy(want, tc.want)
			if diff := cmp.Diff(want, annotationsOf(t, after)); diff != "" {
				t.Errorf("annotations (-want +got)\n%s", diff)
			}
			dry := *tc.review
			dry.DryRun = true
			if diff := cmp.Diff(string(answer.Patch), string(reviewer.Mutate(&dry).Patch)); diff != "" {
				t.Errorf("a dry run differs (-want +got)\n%s", diff)
			}
			again := *tc.review
			again.Object = after
			if second := reviewer.Mutate(&again); second.Patch != nil {
				t.Errorf("reinvoked: verdict %q, patch %s", second.Verdict, second.Patch)
			}
			if tc.review.Operation == admissionv1.Create && len(rec.records) != 0 {
				t.Error("the mutating webhook recorded a creation, which has no uid yet")
			}
		})
	}
}

func TestNothingIsStamped(t *testing.T) {
	labeled := func(s *v1alpha1.GuardSpec) {
		s.Selector = metaSelector("guarded", "yes")
	}
	owned := set("metadata.ownerReferences", []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "x", "controller": true}})
	replicaSet := func(r *admission.Review) *admission.Review {
		r.Kind.Kind = "ReplicaSet"
		return r
	}
	onReplicaSets := func(s *v1alpha1.GuardSpec) { s.Resources[0].Kind = "ReplicaSet" }
	inNamespace := func(namespace string) *admission.Review {
		r := create(alice, deployment(t))
		r.Namespace = namespace
		return r
	}
	tests := map[string]struct {
		guard  func(*v1alpha1.GuardSpec)
		review *admission.Review
		want   admission.Verdict
	}{
		"in another namespace":               {review: inNamespace("other"), want: VerdictUnguarded},
		"in an excluded namespace":           {review: inNamespace("kube-system"), want: VerdictUnguarded},
		"on an object that no guard selects": {guard: labeled, review: create(alice, deployment(t)), want: VerdictUnguarded},
		"on a kind that no guard names":      {review: replicaSet(create(alice, deployment(t))), want: VerdictUnguarded},
		"on a deletion":                      {review: deletion(alice, deployment(t)), want: VerdictUnchanged},
		"on /scale":                          {review: scale(t, alice, 1, 2), want: VerdictUnchanged},
		"on the ReplicaSet of a Deployment":  {guard: onReplicaSets, review: replicaSet(create(alice, deployment(t, owned))), want: VerdictNotRoot},
		"when the stamp is right already":    {review: create(alice, deployment(t, annotations(hashKey, hashOf(t, deployment(t))))), want: VerdictUnchanged},
		"on a label when the stamp is right": {review: update(alice, deployment(t, annotations(hashKey, hashOf(t, deployment(t)))), deployment(t)), want: VerdictAllow},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reviewer, _ := newReviewer(t, tc.guard)
			if a := reviewer.Mutate(tc.review); a.Verdict != tc.want || a.Patch != nil {
				t.Errorf("verdict %q, want %q; patch %s", a.Verdict, tc.want, a.Patch)
			}
		})
	}
}

func TestATenantCannotLeaveAGuard(t *testing.T) {
	t.Run("by an owner added in the same write", func(t *testing.T) {
		reviewer, _ := newReviewer(t, func(s *v1alpha1.GuardSpec) { s.Resources[0].Kind = "ReplicaSet" })
		owned := set("metadata.ownerReferences", []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "x", "controller": true}})
		r := update(alice, deployment(t, owned, image("evil:1")), deployment(t))
		r.Kind.Kind = "ReplicaSet"
		if a := reviewer.Mutate(r); a.Verdict != VerdictWarn || a.Patch == nil {
			t.Errorf("verdict %q, patch %s", a.Verdict, a.Patch)
		}
	})
	t.Run("by taking the selected label off in the same write", func(t *testing.T) {
		reviewer, rec := newReviewer(t, func(s *v1alpha1.GuardSpec) { s.Selector = metaSelector("app", "web") })
		r := update(alice, deployment(t, set("metadata.labels", map[string]any{"other": "x"}), image("evil:1")), deployment(t))
		if a := reviewer.Mutate(r); a.Verdict != VerdictWarn || a.Patch == nil || len(rec.records) != 1 {
			t.Errorf("verdict %q, patch %s, %d records", a.Verdict, a.Patch, len(rec.records))
		}
	})
}

func TestTheWriterIsStampedOnlyWhenAsked(t *testing.T) {
	reviewer, _ := newReviewer(t, nil)
	got := annotationsOf(t, patched(t, deployment(t), reviewer.Mutate(create(alice, deployment(t)))))
	if _, ok := got[writerKey]; ok {
		t.Errorf("the in-process policy's annotation was set: %v", got)
	}
}

// The rules are those of the in-process policy.
func TestTheWriterStamp(t *testing.T) {
	stamped := func(writer string, groups ...string) func(map[string]any) {
		kv := []string{writerKey, writer}
		if len(groups) > 0 {
			kv = append(kv, groupsKey, groups[0])
		}
		return annotations(kv...)
	}
	tests := map[string]struct {
		review *admission.Review
		groups []string
		writer string
		want   string // groups
	}{
		"names the creator":                       {review: create("bob", deployment(t)), writer: "bob"},
		"names who changed the content":           {review: update("bob", deployment(t, image("x:2"), stamped(alice)), deployment(t, stamped(alice))), writer: "bob"},
		"names the real writer over a forged one": {review: update("bob", deployment(t, image("x:2"), stamped("root")), deployment(t, stamped(alice))), writer: "bob"},
		"comes back when it is forged":            {review: update("bob", deployment(t, stamped("root")), deployment(t, stamped(alice))), writer: alice},
		"comes back when it is removed":           {review: update("bob", deployment(t), deployment(t, stamped(alice, "ops"))), writer: alice, want: "ops"},
		"stays when only a label changes":         {review: update("bob", deployment(t, stamped(alice), set("metadata.labels.x", "y")), deployment(t, stamped(alice))), writer: alice},
		"keeps the listed groups, sorted, once each": {
			review: create("bob", deployment(t)), groups: []string{"z", "ops", "other", "a", "ops"}, writer: "bob", want: "a,ops,z",
		},
		"loses the groups of the writer before":       {review: update("bob", deployment(t, image("x:2"), stamped(alice, "ops")), deployment(t, stamped(alice, "ops"))), writer: "bob"},
		"is not invented for an object that has none": {review: update("bob", deployment(t, set("metadata.labels.x", "y")), deployment(t))},
		"is removed when forged where none was":       {review: update("bob", deployment(t, stamped("root", "ops")), deployment(t))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reviewer, _ := newReviewer(t, nil)
			reviewer.StampWriter, reviewer.StampedGroups = true, []string{"ops", "a", "z"}
			tc.review.Groups = tc.groups
			answer := reviewer.Mutate(tc.review)
			got := annotationsOf(t, patched(t, tc.review.Object, answer))
			want := map[string]string{hashKey: hashOf(t, tc.review.Object)}
			if tc.writer != "" {
				want[writerKey] = tc.writer
			}
			if tc.want != "" {
				want[groupsKey] = tc.want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("annotations (-want +got)\n%s", diff)
			}
		})
	}
}

// Whatever is written, a second round of the same request changes nothing, and
// annotations of others are never touched.
func TestStampingTwiceIsStampingOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SampledFrom([]string{"", "pl1:sha256:00", alice, "bob", "ops"})
		draw := func(label string) func(map[string]any) {
			return func(o map[string]any) {
				keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{hashKey, writerKey, groupsKey, "a/b", "c~1d"}), 0, 5, rapid.ID[string]).Draw(rt, label)
				if keys == nil && rapid.Bool().Draw(rt, label+" absent") {
					return
				}
				var kv []string
				for _, k := range keys {
					kv = append(kv, k, values.Draw(rt, k))
				}
				annotations(kv...)(o)
				image(rapid.SampledFrom([]string{"x:1", "x:2"}).Draw(rt, label+" image"))(o)
			}
		}
		object, old := deployment(t, draw("new")), deployment(t, draw("old"))
		review := update(rapid.SampledFrom([]string{alice, "bob", ci}).Draw(rt, "user"), object, old)
		review.Groups = rapid.SliceOf(rapid.SampledFrom([]string{"ops", "dev"})).Draw(rt, "groups")
		if rapid.Bool().Draw(rt, "create") {
			review = create(review.User, object)
		}
		reviewer, _ := newReviewer(t, nil)
		reviewer.StampWriter = rapid.Bool().Draw(rt, "stamp writer")
		reviewer.StampedGroups = []string{"ops"}

		once := patched(t, object, reviewer.Mutate(review))
		again := *review
		again.Object = once
		if second := reviewer.Mutate(&again); second.Patch != nil {
			rt.Fatalf("second patch %s", second.Patch)
		}
		before, after := annotationsOf(t, object), annotationsOf(t, once)
		for _, key := range []string{hashKey, writerKey, groupsKey} {
			delete(before, key)
			delete(after, key)
		}
		if len(before)+len(after) > 0 && !cmp.Equal(before, after) {
			rt.Fatalf("other annotations changed: %s", cmp.Diff(before, after))
		}
		if hashOf(t, object) != hashOf(t, once) {
			rt.Fatal("the stamp changed the hash")
		}
	})
}
