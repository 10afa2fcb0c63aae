// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

func metaSelector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func audit(s *v1alpha1.GuardSpec) { s.Mode = v1alpha1.GuardModeAudit }

func TestVerdicts(t *testing.T) {
	const gc = "system:serviceaccount:kube-system:generic-garbage-collector"
	changed := deployment(t, image("evil/web:9"))
	tests := map[string]struct {
		guard   func(*v1alpha1.GuardSpec)
		review  *admission.Review
		want    admission.Verdict
		class   v1alpha1.ActorClass
		warned  bool
		records int
	}{
		"a foreign change is warned about":         {review: update(alice, changed, deployment(t)), want: VerdictWarn, class: v1alpha1.ActorUntrusted, warned: true, records: 1},
		"a foreign change under Audit is silent":   {guard: audit, review: update(alice, changed, deployment(t)), want: VerdictAudit, class: v1alpha1.ActorUntrusted, records: 1},
		"a trusted change is allowed and recorded": {review: update(ci, changed, deployment(t)), want: VerdictAllow, class: v1alpha1.ActorTrusted, records: 1},
		"an expected change is allowed":            {review: update(hpa, deployment(t, set("spec.replicas", 5)), deployment(t)), want: VerdictAllow, class: v1alpha1.ActorExpected, records: 1},
		"an expected writer elsewhere is foreign":  {review: update(hpa, changed, deployment(t)), want: VerdictWarn, class: v1alpha1.ActorUntrusted, warned: true, records: 1},
		"a foreign creation is warned about":       {review: create(alice, deployment(t)), want: VerdictWarn, class: v1alpha1.ActorUntrusted, warned: true, records: 1},
		"a trusted creation is allowed":            {review: create(ci, deployment(t)), want: VerdictAllow, class: v1alpha1.ActorTrusted, records: 1},
		"a foreign deletion is warned about":       {review: deletion(alice, deployment(t)), want: VerdictWarn, class: v1alpha1.ActorUntrusted, warned: true, records: 1},
		"the garbage collector deletes":            {review: deletion(gc, deployment(t)), want: VerdictAllow, class: v1alpha1.ActorSystem, records: 1},
		"what Plumbline puts back is no news": {
			review: update(executor, changed, deployment(t)), want: VerdictAllow, class: v1alpha1.ActorSystem, records: 1,
		},
		"a label is nothing to record": {review: update(alice, deployment(t, set("metadata.labels.x", "y")), deployment(t)), want: VerdictAllow, class: v1alpha1.ActorUntrusted},
		"a field manager persuades nobody": {
			review: func() *admission.Review { r := update(alice, changed, deployment(t)); r.FieldManager = ci; return r }(),
			want:   VerdictWarn, class: v1alpha1.ActorUntrusted, warned: true, records: 1,
		},
		"an annotation persuades nobody": {
			review: update(alice, deployment(t, image("evil:1"), annotations(writerKey, ci)), deployment(t)),
			want:   VerdictWarn, class: v1alpha1.ActorUntrusted, warned: true, records: 1,
		},
		"rollout restart is benign but recorded": {
			review: update(alice, deployment(t, set("spec.template.metadata.annotations", map[string]any{"kubectl.kubernetes.io/restartedAt": "now"})), deployment(t)),
			want:   VerdictAllow, class: v1alpha1.ActorUntrusted, records: 1,
		},
		"a foreign scale is warned about": {review: scale(t, alice, 2, 7), want: VerdictWarn, class: v1alpha1.ActorUntrusted, warned: true, records: 1},
		"an expected scale is allowed":    {review: scale(t, hpa, 2, 7), want: VerdictAllow, class: v1alpha1.ActorExpected, records: 1},
		"a scale to the same is nothing":  {review: scale(t, alice, 2, 2), want: VerdictAllow},
		"a scale that a labeled guard may cover is warned about": {
			guard:  func(s *v1alpha1.GuardSpec) { s.Selector = metaSelector("app", "web") },
			review: scale(t, alice, 2, 7), want: VerdictWarn, class: v1alpha1.ActorUntrusted, warned: true, records: 1,
		},
		"a scale of a resource that no guard names": {
			guard:  func(s *v1alpha1.GuardSpec) { s.Resources[0].Kind = "StatefulSet" },
			review: scale(t, alice, 2, 7), want: VerdictUnguarded,
		},
		"an unguarded object": {
			guard:  func(s *v1alpha1.GuardSpec) { s.Selector = metaSelector("app", "other") },
			review: update(alice, changed, deployment(t)), want: VerdictUnguarded,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reviewer, rec := newReviewer(t, tc.guard)
			a := reviewer.Validate(tc.review)
			if a.Verdict != tc.want || a.Class != tc.class {
				t.Errorf("verdict %q class %q, want %q %q (%v)", a.Verdict, a.Class, tc.want, tc.class, a.Err)
			}
			if (len(a.Warnings) > 0) != tc.warned {
				t.Errorf("warnings %q, want some: %v", a.Warnings, tc.warned)
			}
			if len(rec.records) != tc.records {
				t.Errorf("%d records, want %d", len(rec.records), tc.records)
			}
			if a.Patch != nil {
				t.Errorf("a validating webhook patched: %s", a.Patch)
			}
			if a.Verdict != VerdictUnguarded && a.Audit["verdict"] != string(a.Verdict) {
				t.Errorf("audit annotations %v", a.Audit)
			}
			dry, before := *tc.review, len(rec.records)
			dry.DryRun = true
			if diff := cmp.Diff(a, reviewer.Validate(&dry)); diff != "" {
				t.Errorf("a dry run is answered otherwise (-want +got)\n%s", diff)
			}
			if len(rec.records) != before {
				t.Error("a dry run left a record")
			}
		})
	}
}

func TestRecords(t *testing.T) {
	seven := int32(7)
	base := specguard.WriteRecord{
		UID: "u-1", APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
		Identity: specguard.Identity{User: alice, Groups: []string{"system:authenticated"}}, FieldManager: "kubectl-edit", Time: noon,
	}
	next := deployment(t, image("shop/web:2"), set("metadata.generation", 2))
	tests := map[string]struct {
		review *admission.Review
		want   func(*specguard.WriteRecord)
	}{
		"an update names the version before and the hash after": {
			review: update(alice, next, deployment(t)),
			want: func(w *specguard.WriteRecord) {
				w.Operation, w.ResourceVersionBefore, w.Generation = specguard.OperationUpdate, "275", 2
				w.HashAfter, w.Fields = hashOf(t, next), []string{"/spec/template/spec/containers/[name=app]/image"}
			},
		},
		"an update is of the old uid, whatever the body claims": {
			review: update(alice, deployment(t, image("shop/web:2"), set("metadata.uid", "forged"), set("metadata.generation", 2)), deployment(t)),
			want: func(w *specguard.WriteRecord) {
				w.Operation, w.ResourceVersionBefore, w.Generation = specguard.OperationUpdate, "275", 2
				w.HashAfter, w.Fields = hashOf(t, next), []string{"/spec/template/spec/containers/[name=app]/image"}
			},
		},
		"a creation has no version before": {
			review: create(alice, deployment(t, set("metadata.resourceVersion", nil))),
			want: func(w *specguard.WriteRecord) {
				w.Operation, w.Generation, w.HashAfter = specguard.OperationCreate, 1, hashOf(t, deployment(t))
			},
		},
		"a deletion has no hash after": {
			review: deletion(alice, deployment(t)),
			want: func(w *specguard.WriteRecord) {
				w.Operation, w.ResourceVersionBefore = specguard.OperationDelete, "275"
			},
		},
		"a scale has replicas, and the parent's kind": {
			review: scale(t, alice, 2, 7),
			want: func(w *specguard.WriteRecord) {
				w.Operation, w.Subresource, w.ResourceVersionBefore = specguard.OperationUpdate, "scale", "275"
				w.Replicas, w.Fields = &seven, []string{"/spec/replicas"}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reviewer, rec := newReviewer(t, nil)
			reviewer.Validate(tc.review)
			want := base
			tc.want(&want)
			if diff := cmp.Diff([]specguard.WriteRecord{want}, rec.records); diff != "" {
				t.Errorf("records (-want +got)\n%s", diff)
			}
		})
	}
}

func TestARecordIsBounded(t *testing.T) {
	reviewer, rec := newReviewer(t, nil)
	var env []any
	for n := range 500 {
		env = append(env, map[string]any{"name": fmt.Sprintf("E%d", n), "value": "x"})
	}
	r := update(alice, deployment(t, set("spec.template.spec.containers.0.env", env)), deployment(t))
	for n := range 1000 {
		r.Groups = append(r.Groups, fmt.Sprintf("g%d", n))
	}
	a := reviewer.Validate(r)
	if n := len(rec.records[0].Fields); n != maxFields {
		t.Errorf("%d fields", n)
	}
	if n := len(rec.records[0].Groups); n != maxGroups {
		t.Errorf("%d groups", n)
	}
	for _, w := range a.Warnings {
		if len(w) > 256 {
			t.Errorf("a warning of %d bytes", len(w))
		}
	}
	if a.Audit["fields"] == "64" {
		t.Error("the audit annotation counts only what is listed")
	}
}

func podReview(t *testing.T, subresource, ownerKind string) *admission.Review {
	t.Helper()
	body := func(extra string) []byte {
		owner := ""
		if ownerKind != "" {
			owner = `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"` + ownerKind + `","name":"web-1","uid":"o-1","controller":true}]`
		}
		return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1-a","namespace":"shop","uid":"p-1","resourceVersion":"9","generation":2` + owner +
			`},"spec":{"containers":[{"name":"app","image":"x:1"}]` + extra + `}}`)
	}
	r := update(alice, body(`,"ephemeralContainers":[{"name":"debug","image":"busybox"}]`), body(""))
	r.Kind, r.SubResource, r.Name = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, subresource, "web-1-a"
	r.Resource = admission.Resource{Group: "", Version: "v1", Resource: "pods"}
	return r
}

func TestPodSubresources(t *testing.T) {
	onPods := func(s *v1alpha1.GuardSpec) {
		s.Resources = []v1alpha1.GuardedResource{{APIVersion: "v1", Kind: "Pod"}}
	}
	debug := "/spec/ephemeralContainers" // the first one brings the list
	tests := map[string]struct {
		guard  func(*v1alpha1.GuardSpec)
		review *admission.Review
		want   admission.Verdict
		fields []string
	}{
		"a pod of a guarded Deployment, by its ReplicaSet": {
			review: podReview(t, "ephemeralcontainers", "ReplicaSet"), want: VerdictWarn, fields: []string{"/metadata/ownerReferences/[uid=o-1]", debug},
		},
		"a resize of it": {
			review: podReview(t, "resize", "ReplicaSet"), want: VerdictWarn, fields: []string{"/metadata/ownerReferences/[uid=o-1]", debug},
		},
		"a pod of a Deployment that a labeled guard may cover": {
			guard:  func(s *v1alpha1.GuardSpec) { s.Selector = metaSelector("app", "web") },
			review: podReview(t, "ephemeralcontainers", "ReplicaSet"), want: VerdictWarn, fields: []string{"/metadata/ownerReferences/[uid=o-1]", debug},
		},
		"a pod of a workload that nobody guards": {review: podReview(t, "ephemeralcontainers", "StatefulSet"), want: VerdictUnguarded},
		"a bare pod that is guarded itself":      {guard: onPods, review: podReview(t, "ephemeralcontainers", ""), want: VerdictWarn, fields: []string{debug}},
		"a bare pod that nobody guards":          {review: podReview(t, "ephemeralcontainers", ""), want: VerdictUnguarded},
		"an owner that owns no pods":             {guard: onPods, review: podReview(t, "resize", "Gadget"), want: VerdictWarn, fields: []string{debug}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reviewer, rec := newReviewer(t, tc.guard)
			a := reviewer.Validate(tc.review)
			if a.Verdict != tc.want {
				t.Errorf("verdict %q, want %q (%v)", a.Verdict, tc.want, a.Err)
			}
			var fields []string
			for _, r := range rec.records {
				fields = r.Fields
				if r.UID != "p-1" || r.Kind != "Pod" || r.Subresource != tc.review.SubResource {
					t.Errorf("record %+v", r)
				}
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" {
				t.Errorf("fields (-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeJudgedSaysSo(t *testing.T) {
	other := func(change func(*admission.Review)) *admission.Review {
		r := update(alice, deployment(t, image("x:2")), deployment(t))
		change(r)
		return r
	}
	duplicate := []byte(`{"metadata":{"name":"web"},"spec":{"a":1,"a":2}}`)
	deep := []byte(`{"metadata":{},"spec":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`)
	tests := map[string]struct {
		review *admission.Review
		want   admission.Reason
	}{
		"an operation that is not registered":  {other(func(r *admission.Review) { r.Operation = "CONNECT" }), admission.ReasonUnknownOperation},
		"a subresource that is not registered": {other(func(r *admission.Review) { r.SubResource = "status" }), admission.ReasonUnknownSubresource},
		"a key twice":                          {other(func(r *admission.Review) { r.Object = duplicate }), admission.ReasonObject},
		"a key twice in the old object":        {other(func(r *admission.Review) { r.OldObject = duplicate }), admission.ReasonObject},
		"an object that is nested too deep":    {other(func(r *admission.Review) { r.Object = deep }), admission.ReasonObject},
		"no object at all":                     {other(func(r *admission.Review) { r.Object, r.OldObject = nil, nil }), admission.ReasonMalformed},
		"a Scale without a count": {
			func() *admission.Review { return scale(t, alice, 1, "many") }(), admission.ReasonObject,
		},
		"a Scale with a negative count": {
			func() *admission.Review { return scale(t, alice, 1, -1) }(), admission.ReasonObject,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reviewer, rec := newReviewer(t, nil)
			a := reviewer.Validate(tc.review)
			if a.Verdict != admission.VerdictUnassessed || a.Reason != tc.want {
				t.Errorf("verdict %q reason %q, want unassessed %q", a.Verdict, a.Reason, tc.want)
			}
			if diff := cmp.Diff(map[string]string{"verdict": "unassessed", "reason": string(tc.want)}, a.Audit); diff != "" {
				t.Errorf("audit (-want +got)\n%s", diff)
			}
			if len(rec.records) != 0 {
				t.Errorf("recorded %+v", rec.records)
			}
		})
	}
	t.Run("no snapshot yet", func(t *testing.T) {
		reviewer := &Reviewer{Snapshot: func() *Snapshot { return nil }, Recorder: &recorder{}}
		for name, judge := range map[string]func(*admission.Review) admission.Answer{"mutate": reviewer.Mutate, "validate": reviewer.Validate} {
			if a := judge(create(alice, deployment(t))); a.Reason != admission.ReasonNoSnapshot {
				t.Errorf("%s: reason %q", name, a.Reason)
			}
		}
	})
}
