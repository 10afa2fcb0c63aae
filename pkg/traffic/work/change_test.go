// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// The author of the release asks for another image after the last stage has passed, and the discovery server
// has not seen it: no request has proved that image.
func TestNext_PutsNoChangeIntoTheBaselineThatTheRunHasNotMeasured(t *testing.T) {
	w := newWorld(t, v1alpha1.WorkUpdateBaseline, 0).withClone(t, 6)
	w.release.Spec.Variations[1].Clone.Image = "shop:3"
	action := work.Next(w.read())
	if action.Kind != work.End || action.Status.Phase != v1alpha1.WorkRefused || action.Status.Reason != v1alpha1.WorkInvalidSpec || !strings.Contains(action.Status.Message, "run 3 has measured") {
		t.Errorf("the action is %+v", action)
	}
	w.release.Spec.Variations[1].Clone.Image = "shop:2"
	if action := work.Next(w.read()); action.Kind == work.End {
		t.Errorf("the change of the run is refused: %+v", action.Status)
	}
}

// queued has the policy be Queue, and the spec ask for another image than the clone was made with by a work that
// succeeded.
func queued(t *testing.T, w *world) []v1alpha1.ReleaseWork {
	t.Helper()
	w.release.Spec.Rollout.Supersede = v1alpha1.SupersedeQueue
	w.release.Spec.Variations[1].Clone.Image = "shop:3"
	made := w.work.DeepCopy()
	made.Spec.Number, made.Spec.Verb, made.Spec.Replicas = 1, v1alpha1.WorkCreateClone, new(int32(1))
	made.Status = v1alpha1.ReleaseWorkStatus{Phase: v1alpha1.WorkSucceeded, TemplateHash: hashOf(t, w.clone)}
	return []v1alpha1.ReleaseWork{*made}
}

// With the policy Queue the next change waits in the spec, and the run goes on with what its requests have proved.
func TestNext_GoesOnWithTheChangeOfTheRunWhileAnotherOneIsQueued(t *testing.T) {
	for verb, image := range map[v1alpha1.ReleaseWorkVerb]string{v1alpha1.WorkUpdateBaseline: "shop:2", v1alpha1.WorkScale: "shop:1"} {
		t.Run(string(verb), func(t *testing.T) {
			w := newWorld(t, verb, 9).withClone(t, 6)
			w.release = work.Keep(w.release, "canary", w.clone, queued(t, w))
			if last, _ := w.carry(t); last.Status.Phase != v1alpha1.WorkSucceeded {
				t.Fatalf("the work is %+v", last.Status)
			}
			if got := imageOf(t, w.baseline); got != image || imageOf(t, w.clone) != "shop:2" {
				t.Errorf("the baseline has %s, and the clone %s", got, imageOf(t, w.clone))
			}
		})
	}
}

func TestKeepNeedsACloneThatTheExecutorHasMadeForTheRun(t *testing.T) {
	forge := func(w *world) {
		w.clone.SetAnnotations(map[string]string{v1alpha1.AnnotationCloneChange: `{"image":"evil:1","podLabels":{"app":"web-canary"}}`})
	}
	for name, c := range map[string]struct {
		change func(*world, *v1alpha1.ReleaseWork)
		// image that the release asks for; "shop:2" is that of the run.
		image v1alpha1.ImageReference
	}{
		"the clone of the run":                         {func(*world, *v1alpha1.ReleaseWork) {}, "shop:2"},
		"the policy is Restart":                        {func(w *world, _ *v1alpha1.ReleaseWork) { w.release.Spec.Rollout.Supersede = v1alpha1.SupersedeRestart }, "shop:3"},
		"the work has not ended":                       {func(_ *world, made *v1alpha1.ReleaseWork) { made.Status.Phase = v1alpha1.WorkRunning }, "shop:3"},
		"the work was refused":                         {func(_ *world, made *v1alpha1.ReleaseWork) { made.Status.Phase = v1alpha1.WorkRefused }, "shop:3"},
		"the work is of the run before":                {func(_ *world, made *v1alpha1.ReleaseWork) { made.Spec.Run = 2 }, "shop:3"},
		"the work is of another release":               {func(_ *world, made *v1alpha1.ReleaseWork) { made.Spec.ReleaseUID = "other" }, "shop:3"},
		"the work is of another variation":             {func(_ *world, made *v1alpha1.ReleaseWork) { made.Spec.Variation = "stable" }, "shop:3"},
		"the work is none that makes a clone":          {func(_ *world, made *v1alpha1.ReleaseWork) { made.Spec.Verb = v1alpha1.WorkScale }, "shop:3"},
		"the work has left another template":           {func(_ *world, made *v1alpha1.ReleaseWork) { made.Status.TemplateHash = "pl1:sha256:00" }, "shop:3"},
		"the run has measured another template":        {func(w *world, _ *v1alpha1.ReleaseWork) { w.release.Status.Rollout.Run.To.Hash = "pl1:sha256:00" }, "shop:3"},
		"there is no run":                              {func(w *world, _ *v1alpha1.ReleaseWork) { w.release.Status.Rollout.Run = nil }, "shop:3"},
		"there is no clone":                            {func(w *world, _ *v1alpha1.ReleaseWork) { w.clone = nil }, "shop:3"},
		"the clone does not say what it was made from": {func(w *world, _ *v1alpha1.ReleaseWork) { w.clone.SetAnnotations(nil) }, "shop:3"},
		"a forged annotation is found later":           {func(w *world, _ *v1alpha1.ReleaseWork) { forge(w) }, "evil:1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, v1alpha1.WorkUpdateBaseline, 0).withClone(t, 6)
			works := queued(t, w)
			c.change(w, &works[0])
			w.release = work.Keep(w.release, "canary", w.clone, works)
			if got := w.release.Spec.Variations[1].Clone.Image; got != c.image {
				t.Errorf("the release asks for %s, want %s", got, c.image)
			}
			if c.image == "shop:2" {
				return
			}
			if last, _ := w.carry(t); last.Status.Phase != v1alpha1.WorkRefused || imageOf(t, w.baseline) != "shop:1" {
				t.Errorf("the work is %+v, and the baseline has %s", last.Status, imageOf(t, w.baseline))
			}
		})
	}
}

// The assessor authorizes what the run has left, whatever the spec asks for next.
func TestLeftIsThatOfTheRunWhileAnotherChangeIsQueued(t *testing.T) {
	w := newWorld(t, v1alpha1.WorkUpdateBaseline, 0).withClone(t, 6)
	authorized := w.baseline.DeepCopy()
	w.release = work.Keep(w.release, "canary", w.clone, queued(t, w))
	w.carry(t)
	left := work.Left(w.work, w.release, nil, authorized)
	if len(left) != 1 || wholeHash(t, left[0]) != wholeHash(t, w.baseline) {
		t.Errorf("%d bodies are left, and the executor left %s", len(left), imageOf(t, w.baseline))
	}
}
