// SPDX-License-Identifier: Apache-2.0

package clone_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
)

// drawClone draws how a clone differs from a Deployment with the containers c0 to c2.
func drawClone(t *rapid.T) *v1alpha1.VariationClone {
	word := rapid.StringMatching(`[a-c]`)
	env := rapid.Custom(func(t *rapid.T) []v1alpha1.CloneVariable {
		var out []v1alpha1.CloneVariable
		for _, name := range rapid.SliceOfNDistinct(word, 0, 3, rapid.ID).Draw(t, "variables") {
			out = append(out, variable(name, rapid.StringMatching(`[x-z]?`).Draw(t, "value")))
		}
		return out
	})
	c := &v1alpha1.VariationClone{PodLabels: map[string]v1alpha1.LabelValue{}}
	for _, key := range rapid.SliceOfNDistinct(word, 1, 3, rapid.ID).Draw(t, "labels") {
		c.PodLabels[key] = v1alpha1.LabelValue(word.Draw(t, "label"))
	}
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 2), 1, 3, rapid.ID).Draw(t, "containers") {
		c.Containers = append(c.Containers, v1alpha1.CloneContainer{
			Name: v1alpha1.ContainerName(fmt.Sprint("c", n)), Image: v1alpha1.ImageReference(rapid.StringMatching(`(i[1-3])?`).Draw(t, "image")), Env: env.Draw(t, "env"),
		})
	}
	return c
}

func drawBaseline(t *rapid.T) *unstructured.Unstructured {
	word := rapid.StringMatching(`[a-c]`)
	pairs := func(name string) map[string]any {
		out := map[string]any{}
		for _, key := range rapid.SliceOfNDistinct(word, 1, 3, rapid.ID).Draw(t, name) {
			out[key] = word.Draw(t, name+" value")
		}
		return out
	}
	var containers []any
	for n := range 3 {
		var env []any
		for _, name := range rapid.SliceOfNDistinct(word, 0, 3, rapid.ID).Draw(t, "env of the baseline") {
			env = append(env, map[string]any{"name": name, "value": word.Draw(t, "value of the baseline")})
		}
		container := map[string]any{"name": fmt.Sprint("c", n), "image": "i0"}
		if env != nil {
			container["env"] = env
		}
		containers = append(containers, container)
	}
	podLabels := pairs("pod labels")
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{
			"replicas": int64(3), "selector": map[string]any{"matchLabels": podLabels},
			"template": map[string]any{"metadata": map[string]any{"labels": podLabels}, "spec": map[string]any{"containers": containers}},
		},
	}}
}

// naiveImages are the image and the variables of each container after a change, by name.
func naiveImages(object *unstructured.Unstructured, c *v1alpha1.VariationClone) map[string]map[string]string {
	out := map[string]map[string]string{}
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	for _, raw := range containers {
		fields := raw.(map[string]any)
		of := map[string]string{"image": fields["image"].(string)}
		env, _, _ := unstructured.NestedSlice(fields, "env")
		for _, e := range env {
			value, _ := e.(map[string]any)["value"].(string)
			of["env "+e.(map[string]any)["name"].(string)] = value
		}
		out[fields["name"].(string)] = of
	}
	if c == nil {
		return out
	}
	for _, d := range c.Containers {
		if d.Image != "" {
			out[string(d.Name)]["image"] = string(d.Image)
		}
		for _, e := range d.Env {
			out[string(d.Name)]["env "+e.Name] = *e.Value
		}
	}
	return out
}

func TestChange_TwiceIsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		release, a := releaseWith(drawClone(t)), drawBaseline(t)
		once, err := clone.Change(release, "canary", a)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := clone.Change(release, "canary", once)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(once.Object, twice.Object); diff != "" {
			t.Fatalf("changed once and twice (-once +twice):\n%s", diff)
		}
		if diff := cmp.Diff(naiveImages(a, release.Spec.Variations[1].Clone), naiveImages(once, nil)); diff != "" {
			t.Fatalf("images and variables (-want +got):\n%s", diff)
		}
	})
}

// TestBodyOf_SelectsItsOwnPodsAlone: neither the Service nor the baseline selects a clone that is
// made, the clone selects its pods, and not those of the baseline.
func TestBodyOf_SelectsItsOwnPodsAlone(t *testing.T) {
	made := 0
	rapid.Check(t, func(t *rapid.T) {
		release, a := releaseWith(drawClone(t)), drawBaseline(t)
		of, _, _ := unstructured.NestedStringMap(a.Object, "spec", "template", "metadata", "labels")
		body, err := clone.BodyOf(release, "canary", a, of, 2)
		changed := false
		for key, value := range release.Spec.Variations[1].Clone.PodLabels {
			changed = changed || of[key] != "" && of[key] != string(value)
		}
		if _, refused := errors.AsType[*clone.RefusedError](err); refused {
			if changed {
				t.Fatalf("a label of the selector differs, and the clone is refused: %v", err)
			}
			return
		}
		if err != nil || !changed {
			t.Fatalf("no label of the selector differs: %v", err)
		}
		made++
		pods, _, _ := unstructured.NestedStringMap(body.Object, "spec", "template", "metadata", "labels")
		own, _, _ := unstructured.NestedStringMap(body.Object, "spec", "selector", "matchLabels")
		if labels.SelectorFromSet(of).Matches(labels.Set(pods)) {
			t.Fatal("the baseline selects the clone's pods")
		}
		if !labels.SelectorFromSet(own).Matches(labels.Set(pods)) || labels.SelectorFromSet(own).Matches(labels.Set(of)) {
			t.Fatal("the clone does not select its own pods alone")
		}
		changedBaseline, err := clone.Change(release, "canary", a)
		if err != nil {
			t.Fatal(err)
		}
		again, err := clone.BodyOf(release, "canary", changedBaseline, of, 2)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(body.Object, again.Object); diff != "" {
			t.Fatalf("the clone of the baseline before and after the change (-before +after):\n%s", diff)
		}
	})
	if made == 0 {
		t.Fatal("no clone was made, so this proves nothing")
	}
}

// FuzzBodyOf: a body from any JSON is refused or made, and hashed or refused, and never a panic.
func FuzzBodyOf(f *testing.F) {
	raw, err := baseline(f).MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"selector":[],"template":{"spec":{"containers":[3,{"name":4}]}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a := &unstructured.Unstructured{}
		if a.UnmarshalJSON(raw) != nil {
			return
		}
		release := releaseWith(&v1alpha1.VariationClone{Image: "shop:2", Env: []v1alpha1.CloneVariable{variable("A", "b")}})
		body, err := clone.BodyOf(release, "canary", a, service, 1)
		if err != nil {
			return
		}
		if !clone.Owned(release, body) || clone.Replicas(body) != 1 {
			t.Fatalf("a body that is no clone: %v", body)
		}
		_, _ = clone.TemplateHash(body)
	})
}
