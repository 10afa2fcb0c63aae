// SPDX-License-Identifier: Apache-2.0

package clone_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
)

func replaceOnce(t testing.TB, text, old, replacement string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is not there once", old)
	}
	return strings.Replace(text, old, replacement, 1)
}

// TestBodyOf_WholeBody shows all that a clone keeps of the baseline, and all that it does not.
func TestBodyOf_WholeBody(t *testing.T) {
	release := releaseWith(&v1alpha1.VariationClone{Image: "shop:2", Env: []v1alpha1.CloneVariable{variable("MODE", "new"), variable("ADDED", "")}})
	a := baseline(t)
	before := a.DeepCopy()
	got, err := clone.BodyOf(release, "canary", a, service, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := objectOf(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-canary
  namespace: shop
  labels: {app: web-canary, team: shop, plumbline.dev/clone: r-uid}
  annotations:
    owner: shop
    plumbline.dev/clone-change: '{"image":"shop:2","env":[{"name":"MODE","value":"new"},{"name":"ADDED","value":""}],"podLabels":{"app":"web-canary"}}'
  ownerReferences: [{apiVersion: plumbline.dev/v1alpha1, kind: ABRelease, name: web, uid: r-uid, controller: true}]
spec:
  replicas: 2
  futureField: {kept: true}
  selector: {matchLabels: {plumbline.dev/clone: r-uid}}
  template:
    metadata:
      labels: {app: web-canary, tier: front, app.kubernetes.io/instance: shop, plumbline.dev/clone: r-uid}
      annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-02T00:00:00Z", checksum: abc}
    spec:
      initContainers:
      - {name: migrate, image: "migrate:1"}
      containers:
      - name: app
        image: shop:2
        env: [{name: FIRST, value: a}, {name: MODE, value: new}, {name: LAST, value: z}, {name: ADDED}]
`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("the clone's body (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Object, a.Object); diff != "" {
		t.Errorf("the baseline was changed (-before +after):\n%s", diff)
	}
	if !clone.Owned(release, got) {
		t.Error("the release does not own its clone")
	}
}

func TestBodyOf_Refusals(t *testing.T) {
	labels := func(pairs ...string) map[string]v1alpha1.LabelValue {
		out := map[string]v1alpha1.LabelValue{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = v1alpha1.LabelValue(pairs[i+1])
		}
		return out
	}
	image := func(more map[string]v1alpha1.LabelValue) *v1alpha1.VariationClone {
		return &v1alpha1.VariationClone{Image: "shop:2", PodLabels: more}
	}
	cases := map[string]struct {
		clone    *v1alpha1.VariationClone
		change   func(*v1alpha1.ABRelease, *unstructured.Unstructured)
		field    string
		contains string
	}{
		"the Service selects the pods": {
			clone: image(labels("tier", "back")), field: "spec.variations[canary].clone.podLabels",
			contains: "the Service web selects the pods of the clone: give another value to one of app",
		},
		"the baseline selects the pods": {
			clone:  image(labels("color", "blue")),
			change: func(r *v1alpha1.ABRelease, _ *unstructured.Unstructured) { r.Spec.ServiceName = "none" },
			field:  "spec.variations[canary].clone.podLabels", contains: "one of app, tier",
		},
		"the baseline selects the pods by an expression": {
			clone: image(labels("app", "web-canary")),
			change: func(_ *v1alpha1.ABRelease, a *unstructured.Unstructured) {
				_ = unstructured.SetNestedMap(a.Object, map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "Exists"}}}, "spec", "selector")
			},
			field: "spec.variations[canary].clone.podLabels", contains: "one of tier",
		},
		"an image for two containers": {
			clone: image(nil),
			change: func(_ *v1alpha1.ABRelease, a *unstructured.Unstructured) {
				*a = *baseline(t, twoContainers)
			},
			field: "spec.variations[canary].clone.image", contains: "has 2 containers: give clone.containers, with one of the names app, side",
		},
		"no such container": {
			clone: &v1alpha1.VariationClone{Containers: []v1alpha1.CloneContainer{{Name: "db", Image: "db:2"}}},
			field: "spec.variations[canary].clone.containers[db]", contains: "no container of that name: use one of app, migrate",
		},
		"a StatefulSet": {
			clone: image(nil),
			change: func(r *v1alpha1.ABRelease, _ *unstructured.Unstructured) {
				r.Spec.Variations[0].Workload.Kind = v1alpha1.VariationStatefulSet
			},
			field: "spec.variations[stable].workload", contains: "made from a Deployment",
		},
		"another Deployment": {
			clone:  image(nil),
			change: func(_ *v1alpha1.ABRelease, a *unstructured.Unstructured) { a.SetName("other") },
			field:  "spec.variations[stable].workload", contains: "is not the Deployment web",
		},
		"a Deployment of another namespace": {
			clone:  image(nil),
			change: func(_ *v1alpha1.ABRelease, a *unstructured.Unstructured) { a.SetNamespace("other") },
			field:  "spec.variations[stable].workload", contains: "is not the Deployment web",
		},
		"a clone of a clone": {
			clone: image(nil),
			change: func(_ *v1alpha1.ABRelease, a *unstructured.Unstructured) {
				a.SetLabels(map[string]string{v1alpha1.LabelClone: "other"})
			},
			field: "spec.variations[stable].workload", contains: "is itself a clone",
		},
		"a variation that is a workload": {
			clone: image(nil),
			change: func(r *v1alpha1.ABRelease, _ *unstructured.Unstructured) {
				r.Spec.Variations[1].Clone = nil
			},
			field: "spec.variations[canary].clone", contains: "the variation is no clone",
		},
		"a variation that is gone": {
			clone:  image(nil),
			change: func(r *v1alpha1.ABRelease, _ *unstructured.Unstructured) { r.Spec.Variations = r.Spec.Variations[:1] },
			field:  "spec.variations", contains: "has no variation canary",
		},
		"a stable variation that is the clone": {
			clone:  image(nil),
			change: func(r *v1alpha1.ABRelease, _ *unstructured.Unstructured) { r.Spec.Stable = "canary" },
			field:  "spec.stable", contains: "the stable variation is a clone",
		},
		"a name that is too long": {
			clone:  image(nil),
			change: func(r *v1alpha1.ABRelease, _ *unstructured.Unstructured) { r.Name = strings.Repeat("w", 60) },
			field:  "spec.variations[canary].name", contains: "longer than 63 characters",
		},
		"a selector that cannot be read": {
			clone: image(nil),
			change: func(_ *v1alpha1.ABRelease, a *unstructured.Unstructured) {
				a.Object["spec"].(map[string]any)["selector"] = map[string]any{"matchLabels": "web"}
			},
			field: "spec.variations[stable].workload", contains: "cannot be read",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			release, a, svc := releaseWith(tc.clone), baseline(t), service
			if tc.change != nil {
				tc.change(release, a)
			}
			if release.Spec.ServiceName == "none" {
				svc = nil
			}
			got, err := clone.BodyOf(release, "canary", a, svc, 1)
			refusal, refused := errors.AsType[*clone.RefusedError](err)
			if !refused || got != nil {
				t.Fatalf("got %v, %v, want a refusal", got, err)
			}
			if refusal.Field != tc.field || !strings.Contains(refusal.Message, tc.contains) {
				t.Errorf("got %v, want %s with %q", err, tc.field, tc.contains)
			}
		})
	}
}

func TestChange_KeepsAllElse(t *testing.T) {
	release := releaseWith(&v1alpha1.VariationClone{Containers: []v1alpha1.CloneContainer{{Name: "migrate", Image: "migrate:2"}, {Name: "app", Image: "shop:2"}}})
	got, err := clone.Change(release, "canary", baseline(t))
	if err != nil {
		t.Fatal(err)
	}
	want := objectOf(t, strings.NewReplacer("migrate:1", "migrate:2", "shop:1", "shop:2").Replace(baselineYAML))
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("the changed baseline (-want +got):\n%s", diff)
	}
}

func TestRenew_KeepsWhatTheServerWrote(t *testing.T) {
	release := releaseWith(&v1alpha1.VariationClone{Image: "shop:2"})
	body, err := clone.BodyOf(release, "canary", baseline(t), service, 3)
	if err != nil {
		t.Fatal(err)
	}
	live := body.DeepCopy()
	live.SetUID("c-uid")
	live.SetResourceVersion("5")
	live.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": "2", "stale": "yes", v1alpha1.AnnotationCloneChange: "that of the run before"})
	_ = unstructured.SetNestedField(live.Object, int64(0), "spec", "replicas")
	got := clone.Renew(live, body)
	want := body.DeepCopy()
	want.SetUID("c-uid")
	want.SetResourceVersion("5")
	want.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": "2", "owner": "shop", v1alpha1.AnnotationCloneChange: body.GetAnnotations()[v1alpha1.AnnotationCloneChange]})
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("the renewed clone (-want +got):\n%s", diff)
	}
	if clone.Replicas(live) != 0 || clone.Replicas(got) != 3 || clone.Replicas(&unstructured.Unstructured{Object: map[string]any{}}) != 1 {
		t.Error("replicas are read wrongly")
	}
}

func TestWorkloadOf(t *testing.T) {
	release := releaseWith(&v1alpha1.VariationClone{Image: "shop:2"})
	cases := map[v1alpha1.VariationName]*v1alpha1.VariationWorkload{
		"stable": {Kind: v1alpha1.VariationDeployment, Name: "web"},
		"canary": {Kind: v1alpha1.VariationDeployment, Name: "web-canary"},
		"other":  nil,
	}
	for name, want := range cases {
		if diff := cmp.Diff(want, clone.WorkloadOf(release, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
