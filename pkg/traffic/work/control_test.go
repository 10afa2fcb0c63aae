// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// newControlWorld has a work about the fresh control of a release, as the executor sees both.
func newControlWorld(t *testing.T, verb v1alpha1.ReleaseWorkVerb, replicas int32) *world {
	t.Helper()
	w := newWorld(t, verb, replicas)
	w.work.Spec.Variation = v1alpha1.FreshControl
	w.release.Spec.Rollout.Analysis = &v1alpha1.RolloutAnalysisSpec{
		Control: v1alpha1.ControlFresh, ControlPodLabels: map[string]v1alpha1.LabelValue{"app": "web-control"},
	}
	w.release.Status.Rollout.Run.From.Variation = "stable"
	w.release = clone.WithControl(w.release, v1alpha1.FreshControl)
	return w
}

func (w *world) withControl(t *testing.T, replicas int32) *world {
	t.Helper()
	body, err := clone.BodyOf(w.release, v1alpha1.FreshControl, w.baseline, w.facts.Service, replicas)
	if err != nil {
		t.Fatal(err)
	}
	body.SetUID("c-uid")
	body.SetResourceVersion("50")
	w.clone = body
	return w
}

func TestNext_MakesAFreshControl(t *testing.T) {
	w := newControlWorld(t, v1alpha1.WorkCreateClone, 3)
	w.carry(t)
	if w.work.Status.Phase != v1alpha1.WorkSucceeded || w.writes != 1 || imageOf(t, w.clone) != "shop:1" || clone.Replicas(w.clone) != 3 || w.clone.GetName() != "web-fresh-control" {
		t.Fatalf("got %+v after %d writes: %v", w.work.Status, w.writes, w.clone)
	}
	if w.work.Status.TemplateHash != hashOf(t, w.clone) || w.work.Status.TargetRef.Name != "web-fresh-control" {
		t.Errorf("the status says %+v", w.work.Status)
	}
	left := work.Left(w.work, w.release, w.baseline, nil)
	if len(left) != 1 || hashOf(t, left[0]) != hashOf(t, w.clone) {
		t.Errorf("the work leaves %v, which is not what it wrote", left)
	}
}

// A forged work about a control has nothing made that the release does not ask for.
func TestNext_EndsOfWorksAboutAFreshControl(t *testing.T) {
	for name, tc := range map[string]struct {
		verb     v1alpha1.ReleaseWorkVerb
		replicas int32
		change   func(*testing.T, *world)
		phase    v1alpha1.ReleaseWorkPhase
		reason   v1alpha1.ReleaseWorkReason
		message  string
	}{
		"a release that asks for none": {v1alpha1.WorkCreateClone, 3, func(t *testing.T, w *world) {
			w.release.Spec.Variations = w.release.Spec.Variations[:2]
		}, v1alpha1.WorkRefused, v1alpha1.WorkInvalidSpec, "spec.rollout.analysis.control: the release asks for no fresh control: set Fresh"},
		"pods that the Service selects": {v1alpha1.WorkCreateClone, 3, func(t *testing.T, w *world) {
			w.facts.Service = map[string]string{"app": "web-control"}
		}, v1alpha1.WorkRefused, v1alpha1.WorkInvalidSpec, "spec.rollout.analysis.controlPodLabels: the Service web selects"},
		"another baseline": {v1alpha1.WorkCreateClone, 3, func(t *testing.T, w *world) {
			setImage(w.baseline, "shop:9")
		}, v1alpha1.WorkRefused, v1alpha1.WorkBaselineChanged, "not the one"},
		"a Deployment of another owner": {v1alpha1.WorkCreateClone, 3, func(t *testing.T, w *world) {
			w.clone = newBaseline()
			w.clone.SetName("web-fresh-control")
		}, v1alpha1.WorkRefused, v1alpha1.WorkNotOwned, "web-fresh-control"},
		"an update of the baseline": {v1alpha1.WorkUpdateBaseline, 0, nil, v1alpha1.WorkRefused, v1alpha1.WorkInvalidSpec, "another change than the one that run 3 has measured"},
		"a scale":                   {v1alpha1.WorkScale, 5, func(t *testing.T, w *world) { w.withControl(t, 3) }, v1alpha1.WorkSucceeded, "", ""},
		"a scale of an altered control": {v1alpha1.WorkScale, 5, func(t *testing.T, w *world) {
			setImage(w.withControl(t, 3).clone, "evil:1")
		}, v1alpha1.WorkRefused, v1alpha1.WorkTargetMoved, "another pod template"},
		"a scale to 0 after the rollout was removed": {v1alpha1.WorkScale, 0, func(t *testing.T, w *world) {
			w.withControl(t, 3).release.Spec.Rollout = nil
			w.release.Spec.Variations = w.release.Spec.Variations[:2]
		}, v1alpha1.WorkSucceeded, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newControlWorld(t, tc.verb, tc.replicas)
			if tc.change != nil {
				tc.change(t, w)
			}
			w.carry(t)
			if s := &w.work.Status; s.Phase != tc.phase || s.Reason != tc.reason || !strings.Contains(s.Message, tc.message) {
				t.Errorf("got %s %s: %s", s.Phase, s.Reason, s.Message)
			}
		})
	}
}
