// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// kept is a Deployment as an authorized state keeps it: its content in canonical form, read again.
func kept(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	content, err := work.WriteBody(object)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := canon.Parse(content, canon.ParseGVK("apps/v1", "Deployment"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := work.ReadBody(doc.AppendCanonical(nil), object.GetNamespace(), object.GetName())
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// wholeHash is that of all content.
func wholeHash(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	content, err := work.WriteBody(object)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := canon.HashBody(content, canon.ParseGVK("apps/v1", "Deployment"))
	if err != nil {
		t.Fatal(err)
	}
	return string(hash)
}

// TestLeftIsWhatTheExecutorWrites: what the assessor computes from authorized bodies is what a work
// leaves of the live ones.
func TestLeftIsWhatTheExecutorWrites(t *testing.T) {
	tests := map[string]struct {
		verb     v1alpha1.ReleaseWorkVerb
		replicas int32
		clone    bool
	}{
		"a clone is made":                   {v1alpha1.WorkCreateClone, 3, false},
		"a clone of an earlier run is made": {v1alpha1.WorkCreateClone, 3, true},
		"a clone is scaled":                 {v1alpha1.WorkScale, 5, true},
		"a clone is scaled to 0":            {v1alpha1.WorkScale, 0, true},
		"the baseline gets the change":      {v1alpha1.WorkUpdateBaseline, 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.verb, tc.replicas)
			if tc.clone {
				w.withClone(t, 1)
			}
			baseline, authorized := kept(t, w.baseline), (*unstructured.Unstructured)(nil)
			target := func() *unstructured.Unstructured { return w.clone }
			if tc.verb == v1alpha1.WorkUpdateBaseline {
				target = func() *unstructured.Unstructured { return w.baseline }
			}
			if t0 := target(); t0 != nil {
				authorized = kept(t, t0)
			}
			if last, _ := w.carry(t); last.Status.Phase != v1alpha1.WorkSucceeded {
				t.Fatalf("the work is %+v", last.Status)
			}
			var hashes []string
			for _, left := range work.Left(w.work, w.release, baseline, authorized) {
				hashes = append(hashes, wholeHash(t, left))
			}
			if len(hashes) == 0 || hashes[0] != wholeHash(t, target()) {
				t.Errorf("the executor left %s, and the bodies are %v", wholeHash(t, target()), hashes)
			}
		})
	}
}

func TestLeftKnowsWhatGivesNoBody(t *testing.T) {
	tests := map[string]struct {
		verb   v1alpha1.ReleaseWorkVerb
		change func(*world)
	}{
		"a clone without an authorized baseline":  {v1alpha1.WorkCreateClone, func(w *world) { w.baseline = nil }},
		"a release without the variation":         {v1alpha1.WorkCreateClone, func(w *world) { w.work.Spec.Variation = "other" }},
		"a verb that this version does not know":  {"Delete", func(*world) {}},
		"an update that the release does not ask": {v1alpha1.WorkUpdateBaseline, func(w *world) { w.release.Spec.Rollout.Promotion = v1alpha1.PromotionAwaitBaseline }},
		"an update without a rollout":             {v1alpha1.WorkUpdateBaseline, func(w *world) { w.release.Spec.Rollout = nil }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.verb, 1)
			authorized := w.baseline
			if tc.verb == v1alpha1.WorkCreateClone {
				authorized = nil
			}
			tc.change(w)
			if left := work.Left(w.work, w.release, w.baseline, authorized); len(left) > 0 {
				t.Errorf("%d bodies", len(left))
			}
		})
	}
}

// An authorized clone that is scaled keeps its template, whatever its baseline has become.
func TestAScaledCloneKeepsItsTemplate(t *testing.T) {
	w := newWorld(t, v1alpha1.WorkScale, 0).withClone(t, 2)
	authorized := kept(t, w.clone)
	left := work.Left(w.work, w.release, nil, authorized)
	if len(left) != 1 || clone.Replicas(left[0]) != 0 || hashOf(t, left[0]) != hashOf(t, authorized) {
		t.Errorf("the bodies are %+v", left)
	}
	if without := work.Left(w.work, nil, nil, authorized); len(without) != 1 || wholeHash(t, without[0]) != wholeHash(t, left[0]) {
		t.Errorf("without its release the bodies are %+v", without)
	}
}

// TestALabelIsBelievedOnlyOfTheLastWorkOfTheRun plays a tenant who may change the labels of a
// Deployment.
func TestALabelIsBelievedOnlyOfTheLastWorkOfTheRun(t *testing.T) {
	about := func(uid string, number int64, verb v1alpha1.ReleaseWorkVerb) v1alpha1.ReleaseWork {
		w := v1alpha1.ReleaseWork{Spec: v1alpha1.ReleaseWorkSpec{
			ReleaseName: "web", ReleaseUID: "r-uid", Run: 3, Number: number, Verb: verb, Variation: "canary",
		}}
		w.UID = types.UID("w-" + uid)
		w.Status.Phase, w.Status.Intent = v1alpha1.WorkSucceeded, &v1alpha1.ReleaseWorkIntent{TemplateHash: "h"}
		return w
	}
	tests := map[string]struct {
		uid, target string
		change      func(*work.Mark)
		want        string
	}{
		"the last work about the clone":       {"w-3", "web-canary", func(*work.Mark) {}, "w-3"},
		"the work about the baseline":         {"w-4", "web", func(*work.Mark) {}, "w-4"},
		"an earlier work of the run":          {"w-1", "web-canary", func(*work.Mark) {}, ""},
		"the work about another object":       {"w-4", "web-canary", func(*work.Mark) {}, ""},
		"an object that no work is about":     {"w-3", "other", func(*work.Mark) {}, ""},
		"no work has the uid":                 {"forged", "web-canary", func(*work.Mark) {}, ""},
		"no release":                          {"w-3", "web-canary", func(m *work.Mark) { m.Release = nil }, ""},
		"another release of the name":         {"w-3", "web-canary", func(m *work.Mark) { m.Release.UID = "other" }, ""},
		"another run":                         {"w-3", "web-canary", func(m *work.Mark) { m.Release.Status.Rollout.Run.Number = 4 }, ""},
		"a release without a run":             {"w-3", "web-canary", func(m *work.Mark) { m.Release.Status.Rollout = nil }, ""},
		"a work for which nothing is written": {"w-3", "web-canary", func(m *work.Mark) { m.Works[2].Status.Intent = nil }, ""},
		"a work that was refused":             {"w-3", "web-canary", func(m *work.Mark) { m.Works[2].Status.Phase = v1alpha1.WorkRefused }, ""},
		"before a later one that was refused": {"w-1", "web-canary", func(m *work.Mark) { m.Works[2].Status.Phase = v1alpha1.WorkRefused }, "w-1"},
		"before a later one of another run":   {"w-1", "web-canary", func(m *work.Mark) { m.Works[2].Spec.Run = 2 }, "w-1"},
		"a work that is being carried out":    {"w-3", "web-canary", func(m *work.Mark) { m.Works[2].Status.Phase = v1alpha1.WorkRunning }, "w-3"},
		"a work that names another release":   {"w-3", "web-canary", func(m *work.Mark) { m.Works[2].Spec.ReleaseName = "other" }, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := &work.Mark{UID: types.UID(tc.uid), Target: tc.target, Release: newWorld(t, v1alpha1.WorkScale, 1).release, Works: []v1alpha1.ReleaseWork{
				about("1", 1, v1alpha1.WorkCreateClone), about("2", 2, v1alpha1.WorkUpdateBaseline), about("3", 3, v1alpha1.WorkScale), about("4", 4, v1alpha1.WorkUpdateBaseline),
			}}
			tc.change(m)
			got := ""
			if last := m.Last(); last != nil {
				got = string(last.UID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A work that scales a group leaves its authorized body with other replicas, and nothing of the other group.
func TestAScaledGroupKeepsAllElse(t *testing.T) {
	w := newGroups(t, "canary", 1, 4, 0)
	authorized := kept(t, w.clone)
	w.carry(t)
	if work.HasStart(w.work, w.release) {
		t.Error("it starts from another object")
	}
	left := work.Left(w.work, w.release, nil, authorized)
	if len(left) != 1 || wholeHash(t, left[0]) != wholeHash(t, kept(t, w.clone)) {
		t.Errorf("it leaves %+v", left)
	}
	mark := &work.Mark{UID: w.work.UID, Target: "web-next", Works: []v1alpha1.ReleaseWork{*w.work}, Release: w.release}
	if mark.Last() == nil {
		t.Error("the label is not believed")
	}
	if mark.Target = "web"; mark.Last() != nil {
		t.Error("the label is believed of the other group")
	}
}
