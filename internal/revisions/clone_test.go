// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// copied is a release whose canary is a clone of Deployment web with an image.
func copied(image v1alpha1.ImageReference) *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Generation: 1}}
	r.Spec.ServiceName, r.Spec.Stable = "web", "stable"
	r.Spec.Variations = []v1alpha1.Variation{
		{Name: "stable", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web"}},
		{Name: "canary", Clone: &v1alpha1.VariationClone{Image: image, MinReplicas: new(int32(2)), PodLabels: map[string]v1alpha1.LabelValue{"app": "web-canary"}}},
	}
	return r
}

// baseline is Deployment web with three pods of an image.
func baseline(image string, updated int64) *unstructured.Unstructured {
	d := workload("Deployment", image, rolled(updated))
	spec, _, _ := unstructured.NestedMap(d.Object, "spec")
	spec["replicas"], spec["selector"] = int64(3), map[string]any{"matchLabels": map[string]any{"app": "web"}}
	d.Object["spec"] = spec
	return d
}

// made is the clone of a baseline as the executor makes it, with so many pods.
func made(t *testing.T, r *v1alpha1.ABRelease, of *unstructured.Unstructured, pods int64) *unstructured.Unstructured {
	t.Helper()
	body, err := clone.BodyOf(r, "canary", of, appWeb, int32(pods)) //nolint:gosec // few
	if err != nil {
		t.Fatal(err)
	}
	body.SetGeneration(1)
	body.Object["status"] = map[string]any{"observedGeneration": int64(1), "replicas": pods, "updatedReplicas": pods}
	return body
}

func (a *api) serveClones(objects ...*unstructured.Unstructured) *CloneReader {
	return &CloneReader{Live: a.serve(objects...).Live}
}

func visit(r *v1alpha1.ABRelease) *Visit {
	return &Visit{Release: r, Variation: &r.Spec.Variations[1], Baseline: web("Deployment"), Selector: appWeb, BaselineLabels: []string{"x"}}
}

func mustReadClone(t *testing.T, r *CloneReader, v *Visit) Pair {
	t.Helper()
	pair, err := r.ReadClone(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestReadCloneTellsWhatTheExecutorWouldWrite(t *testing.T) {
	r := copied("shop:2")
	of := baseline("shop:1", 3)
	followed, old := made(t, r, of, 2), made(t, copied("shop:0"), of, 2)
	for name, c := range map[string]struct {
		objects []*unstructured.Unstructured
		want    rollout.Arm
		follows bool
	}{
		"no clone is there yet":                     {[]*unstructured.Unstructured{of}, rollout.Arm{}, false},
		"the clone has the pod template":            {[]*unstructured.Unstructured{of, followed}, rollout.Arm{Targets: 2, Updated: 2, Replicas: 2}, true},
		"the clone is that of another run":          {[]*unstructured.Unstructured{of, old}, rollout.Arm{Targets: 2, Replicas: 2}, false},
		"the pods of the baseline are replaced yet": {[]*unstructured.Unstructured{baseline("shop:1", 1), followed}, rollout.Arm{Targets: 2, Updated: 2, Replicas: 2}, true},
	} {
		t.Run(name, func(t *testing.T) {
			pair := mustReadClone(t, (&api{}).serveClones(c.objects...), visit(r))
			got := pair.Canary
			if got.Revision.Image != "shop:2" || got.Revision.Hash == "" || got.Revision.Hash == pair.Baseline.Revision.Hash {
				t.Errorf("the revision of the clone is %+v", got.Revision)
			}
			if hash, err := clone.TemplateHash(followed); err != nil || hash != got.Revision.Hash {
				t.Errorf("the executor leaves %s, and %s is awaited: %v", hash, got.Revision.Hash, err)
			}
			if hash, err := clone.TemplateHash(of); err != nil || hash != pair.Baseline.Revision.Hash {
				t.Errorf("the executor starts from %s, and %s is expected: %v", hash, pair.Baseline.Revision.Hash, err)
			}
			if got.Labels["app"] != "web-canary" {
				t.Errorf("the pods have %v", got.Labels)
			}
			got.Revision, got.Labels = rollout.Revision{}, nil
			if diff := cmp.Diff(c.want, got); diff != "" || pair.Follows != c.follows {
				t.Errorf("follows %v, and the arm (-want +got):\n%s", pair.Follows, diff)
			}
			want := rollout.Clone{Variation: "canary", Deployment: "web-canary", Baseline: "web", MinReplicas: 2, Hash: pair.Clone.Hash, Change: "image shop:2", Altered: len(c.objects) > 1 && !c.follows}
			if diff := cmp.Diff(want, pair.Clone); diff != "" || want.Hash == "" {
				t.Errorf("the clone (-want +got):\n%s", diff)
			}
		})
	}
}

// A release whose policy is Queue asks for the change that the clone was made from as well.
func TestReadCloneTellsWhatTheCloneWasMadeFrom(t *testing.T) {
	of := baseline("shop:1", 3)
	live := made(t, copied("shop:2"), of, 2)
	alone := mustReadClone(t, (&api{}).serveClones(of, live), visit(copied("shop:2")))
	for name, c := range map[string]struct {
		wanted v1alpha1.ImageReference
		change func(*Visit, *unstructured.Unstructured)
		keeps  bool
	}{
		"the spec asks for another image": {"shop:3", func(*Visit, *unstructured.Unstructured) {}, true},
		"the spec asks for the same":      {"shop:2", func(*Visit, *unstructured.Unstructured) {}, true},
		"the spec gives no clone":         {"shop:3", func(v *Visit, _ *unstructured.Unstructured) { v.Variation.Clone.PodLabels = nil }, true},
		"it is not asked":                 {"shop:3", func(v *Visit, _ *unstructured.Unstructured) { v.Keeps = false }, false},
		"the clone does not say it":       {"shop:3", func(_ *Visit, live *unstructured.Unstructured) { live.SetAnnotations(nil) }, false},
		"the clone has another annotation": {"shop:3", func(_ *Visit, live *unstructured.Unstructured) {
			live.SetAnnotations(map[string]string{v1alpha1.AnnotationCloneChange: `{"image":"shop:2"}`}) // no labels, so its pods would be the Service's
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v, there := visit(copied(c.wanted)), live.DeepCopy()
			v.Keeps = true
			c.change(v, there)
			pair := mustReadClone(t, (&api{}).serveClones(of, there), v)
			if (pair.Kept != nil) != c.keeps {
				t.Fatalf("what is kept is %+v", pair.Kept)
			}
			if pair.Kept == nil {
				return
			}
			if diff := cmp.Diff(alone, *pair.Kept); diff != "" {
				t.Errorf("what is kept (-want +got):\n%s", diff)
			}
			if image := pair.Canary.Revision.Image; pair.Problem == "" && image != string(c.wanted) {
				t.Errorf("the spec asks for %s", image)
			}
		})
	}
}

// A baseline that has the change is changed by nothing, and the clone is to have the same revision still.
func TestABaselineThatHasTheChange(t *testing.T) {
	r := copied("shop:2")
	before := mustReadClone(t, (&api{}).serveClones(baseline("shop:1", 3)), visit(r))
	after := mustReadClone(t, (&api{}).serveClones(baseline("shop:2", 3)), visit(r))
	if before.Clone.Changed || !after.Clone.Changed || before.Canary.Revision.Hash != after.Canary.Revision.Hash || before.Clone.Hash != after.Clone.Hash {
		t.Errorf("before\n%+v\nafter\n%+v", before, after)
	}
	other := mustReadClone(t, (&api{}).serveClones(baseline("shop:1", 3)), visit(copied("shop:3")))
	if other.Clone.Hash == before.Clone.Hash || other.Canary.Revision.Hash == before.Canary.Revision.Hash {
		t.Errorf("another image is no other change: %+v", other)
	}
}

// A new version of Kubernetes adds defaults to pod templates, and pods keep their label.
func TestDefaultsOfAnUpgradeMakeNoRevisionOfAClone(t *testing.T) {
	r, later := copied("shop:2"), baseline("shop:1", 3)
	if err := unstructured.SetNestedField(later.Object, "Later", "spec", "template", "spec", "newPolicy"); err != nil {
		t.Fatal(err)
	}
	before := mustReadClone(t, (&api{}).serveClones(baseline("shop:1", 3)), visit(r)).Canary.Revision
	after := mustReadClone(t, (&api{}).serveClones(later), visit(r)).Canary.Revision
	if before.Hash == after.Hash || !before.Is(after) {
		t.Errorf("%+v is another revision than %+v", after, before)
	}
	if edited := mustReadClone(t, (&api{}).serveClones(later), visit(copied("shop:3"))).Canary.Revision; edited.Is(before) {
		t.Errorf("another image is the same revision: %+v", edited)
	}
}

func TestACloneThatCannotBeMadeIsAProblem(t *testing.T) {
	r := copied("shop:2")
	r.Spec.Variations[1].Clone.PodLabels = map[string]v1alpha1.LabelValue{"tier": "canary"}
	pair := mustReadClone(t, (&api{}).serveClones(baseline("shop:1", 3)), visit(r))
	if !strings.Contains(pair.Problem, "podLabels") || pair.Baseline.Revision.Hash == "" || pair.Canary.Revision.Hash != "" {
		t.Errorf("the pair is %+v", pair)
	}
	if gone := mustReadClone(t, (&api{}).serveClones(), visit(r)); gone.Baseline.Revision.Hash != "" || gone.Clone.Variation != "canary" {
		t.Errorf("without a baseline the pair is %+v", gone)
	}
	if _, err := (&api{err: errors.New("away")}).serveClones().ReadClone(t.Context(), visit(r)); err == nil || !strings.Contains(err.Error(), "reading Deployment shop/web") {
		t.Errorf("the error is %v", err)
	}
}

func TestClonesAreReadWhenSomethingTellsOfThem(t *testing.T) {
	r := copied("shop:2")
	a := &api{}
	reader := a.serveClones(baseline("shop:1", 3), made(t, r, baseline("shop:1", 3), 2))
	look := func(change func(*Visit)) int {
		v := visit(r.DeepCopy())
		v.CloneLabels = []string{"y"}
		change(v)
		before := a.reads
		mustReadClone(t, reader, v)
		return a.reads - before
	}
	same := func(*Visit) {}
	for _, step := range []struct {
		name   string
		change func(*Visit)
		reads  int
	}{
		{"first", same, 2}, {"again", same, 0},
		{"live", func(v *Visit) { v.Live = true }, 2},
		{"with another label of the baseline's pods", func(v *Visit) { v.BaselineLabels = []string{"z"} }, 2},
		{"with labels of two revisions", func(v *Visit) { v.BaselineLabels = []string{"x", "z"} }, 2},
		{"with these again", func(v *Visit) { v.BaselineLabels = []string{"x", "z"} }, 2},
		{"with another spec", func(v *Visit) { v.Release.Generation = 2 }, 2},
		{"with another selector", func(v *Visit) { v.Release.Generation = 2; v.Selector = nil }, 2},
		{"and again", func(v *Visit) { v.Release.Generation = 2; v.Selector = nil }, 0},
	} {
		if got := look(step.change); got != step.reads {
			t.Errorf("%s: %d reads, want %d", step.name, got, step.reads)
		}
	}
	reader.Forget(types.NamespacedName{Namespace: "shop", Name: "web"})
	if got := look(func(v *Visit) { v.Release.Generation = 2; v.Selector = nil }); got != 2 {
		t.Errorf("after the release has gone: %d reads", got)
	}
}

func TestAChangeIsDescribed(t *testing.T) {
	got := describe(&v1alpha1.VariationClone{Containers: []v1alpha1.CloneContainer{
		{Name: "app", Image: "shop:2", Env: []v1alpha1.CloneVariable{{Name: "MODE", Value: new("secret")}}}, {Name: "log", Env: []v1alpha1.CloneVariable{{Name: "A"}, {Name: "B"}}},
	}})
	if want := "image shop:2 of container app; env MODE of container app; env A, B of container log"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}
