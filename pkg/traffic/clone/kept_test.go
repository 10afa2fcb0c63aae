// SPDX-License-Identifier: Apache-2.0

package clone_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
)

// TestKeepGivesTheBodyThatTheCloneWasMadeWith: the release asks for another change by then, and its size is the
// new one.
func TestKeepGivesTheBodyThatTheCloneWasMadeWith(t *testing.T) {
	for name, c := range map[string]*v1alpha1.VariationClone{
		"an image":     {Image: "shop:2"},
		"variables":    {Env: []v1alpha1.CloneVariable{variable("MODE", `"quoted" <&> ü`), variable("EMPTY", "")}},
		"containers":   {Containers: []v1alpha1.CloneContainer{{Name: "app", Image: "shop:2"}, {Name: "migrate", Image: "migrate:2"}}},
		"other labels": {Image: "shop:2", PodLabels: map[string]v1alpha1.LabelValue{"app": "canary", "tier": "back"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.MinReplicas = new(int32(2))
			live, err := clone.BodyOf(releaseWith(c), "canary", baseline(t), service, 3)
			if err != nil {
				t.Fatal(err)
			}
			release := releaseWith(&v1alpha1.VariationClone{Image: "shop:9", MinReplicas: new(int32(5))})
			kept := clone.Keep(release, "canary", live)
			if kept == nil {
				t.Fatal("the change is not known")
			}
			body, err := clone.BodyOf(kept, "canary", baseline(t), service, 3)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(live.Object, body.Object); diff != "" {
				t.Errorf("the body (-made +kept):\n%s", diff)
			}
			if n := *kept.Spec.Variations[1].Clone.MinReplicas; n != 5 || release.Spec.Variations[1].Clone.Image != "shop:9" {
				t.Errorf("minReplicas is %d, and the release has %+v", n, release.Spec.Variations[1].Clone)
			}
		})
	}
}

func TestKeepKnowsWhatSaysNothing(t *testing.T) {
	note := func(text string) func(*unstructured.Unstructured) {
		return func(live *unstructured.Unstructured) {
			live.SetAnnotations(map[string]string{v1alpha1.AnnotationCloneChange: text})
		}
	}
	for name, change := range map[string]func(*unstructured.Unstructured){
		"a clone of a version before":        func(live *unstructured.Unstructured) { live.SetAnnotations(nil) },
		"a Deployment that is no clone":      func(live *unstructured.Unstructured) { live.SetLabels(nil) },
		"a clone of another release":         func(live *unstructured.Unstructured) { live.SetOwnerReferences([]metav1.OwnerReference{}) },
		"what is no JSON":                    note("shop:2"),
		"a field of a later version":         note(`{"image":"shop:2","command":["sh"]}`),
		"more than the executor would write": note(`{"image":"` + strings.Repeat("x", 64<<10) + `"}`),
	} {
		t.Run(name, func(t *testing.T) {
			release := releaseWith(&v1alpha1.VariationClone{Image: "shop:2"})
			live, err := clone.BodyOf(release, "canary", baseline(t), service, 3)
			if err != nil {
				t.Fatal(err)
			}
			change(live)
			if kept := clone.Keep(release, "canary", live); kept != nil {
				t.Errorf("the change is %+v", kept.Spec.Variations[1].Clone)
			}
		})
	}
	release := releaseWith(&v1alpha1.VariationClone{Image: "shop:2"})
	if kept := clone.Keep(release, "canary", nil); kept != nil {
		t.Error("a clone that is not there has a change")
	}
}

// A change of which the annotations have no room is left out, and one of before with it.
func TestBodyOf_LeavesALongChangeOut(t *testing.T) {
	long := &v1alpha1.VariationClone{}
	for range 17 {
		long.Env = append(long.Env, variable("V"+strings.Repeat("X", len(long.Env)), strings.Repeat("x", 4096)))
	}
	short, err := clone.BodyOf(releaseWith(&v1alpha1.VariationClone{Image: "shop:2"}), "canary", baseline(t), service, 3)
	if err != nil {
		t.Fatal(err)
	}
	body, err := clone.BodyOf(releaseWith(long), "canary", baseline(t), service, 3)
	if err != nil {
		t.Fatal(err)
	}
	if note := clone.Renew(short, body).GetAnnotations()[v1alpha1.AnnotationCloneChange]; note != "" {
		t.Errorf("the renewed clone notes %d bytes", len(note))
	}
}
