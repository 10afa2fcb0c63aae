// SPDX-License-Identifier: Apache-2.0

package clone_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
)

// controlled asks for a fresh control beside a clone, and its run has an active variation.
func controlled(active v1alpha1.VariationName) *v1alpha1.ABRelease {
	r := releaseWith(&v1alpha1.VariationClone{Image: "shop:2"})
	r.Spec.Rollout = &v1alpha1.Rollout{RequestedBy: "ada", Analysis: &v1alpha1.RolloutAnalysisSpec{
		Control: v1alpha1.ControlFresh, ControlPodLabels: map[string]v1alpha1.LabelValue{"app": "web-control"},
	}}
	r.Status.Rollout = &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{From: v1alpha1.VariationRevision{Variation: active}}}
	return r
}

// TestAFreshControlIsTheBaselineWithOtherLabels has two containers, of which a clone that changes something has to
// name one.
func TestAFreshControlIsTheBaselineWithOtherLabels(t *testing.T) {
	release, a := controlled("stable"), baseline(t, twoContainers)
	got, err := clone.BodyOf(clone.WithControl(release, v1alpha1.FreshControl), v1alpha1.FreshControl, a, service, 3)
	if err != nil {
		t.Fatal(err)
	}
	if got.GetName() != "web-fresh-control" || clone.Replicas(got) != 3 || !clone.Owned(release, got) {
		t.Errorf("the control is %s with %d pods, owned %v", got.GetName(), clone.Replicas(got), clone.Owned(release, got))
	}
	field := func(o *unstructured.Unstructured, path ...string) any {
		v, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if diff := cmp.Diff(field(a, "spec", "template", "spec"), field(got, "spec", "template", "spec")); diff != "" {
		t.Errorf("the pods (-baseline +control):\n%s", diff)
	}
	wanted := map[string]any{"app": "web-control", "tier": "front", "app.kubernetes.io/instance": "shop", "plumbline.dev/clone": "r-uid.fresh-control"}
	if diff := cmp.Diff(wanted, field(got, "spec", "template", "metadata", "labels")); diff != "" {
		t.Errorf("labels of the pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"plumbline.dev/clone": "r-uid.fresh-control"}, field(got, "spec", "selector", "matchLabels")); diff != "" {
		t.Errorf("the selector, which no pod of the canary has (-want +got):\n%s", diff)
	}
	other, err := clone.BodyOf(release, "canary", baseline(t), service, 3)
	if err != nil {
		t.Fatal(err)
	}
	if label := other.GetLabels()["plumbline.dev/clone"]; label != "r-uid" {
		t.Errorf("the canary has the label %q", label)
	}
}

func TestAReleaseIsSeenWithItsControl(t *testing.T) {
	release := controlled("stable")
	before := release.DeepCopy()
	if clone.WithControl(release, "canary") != release || clone.WithControl(nil, v1alpha1.FreshControl) != nil {
		t.Error("a work about another variation sees another release")
	}
	if seen := clone.WithControl(controlled("next"), v1alpha1.FreshControl); seen.Spec.Stable != "next" || len(seen.Spec.Variations) != 3 {
		t.Errorf("the control is made from %s, of %d variations", seen.Spec.Stable, len(seen.Spec.Variations))
	}
	clone.WithControl(release, v1alpha1.FreshControl)
	if diff := cmp.Diff(before, release); diff != "" {
		t.Errorf("the release was changed (-before +after):\n%s", diff)
	}
}

func TestAFreshControlIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change      func(*v1alpha1.ABRelease)
		field, text string
	}{
		"that the release does not ask for": {
			func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Analysis.Control = v1alpha1.ControlStable },
			"spec.rollout.analysis.control", "the release asks for no fresh control: set Fresh",
		},
		"of a release without a rollout": {
			func(r *v1alpha1.ABRelease) { r.Spec.Rollout = nil },
			"spec.rollout.analysis.control", "the release asks for no fresh control: set Fresh",
		},
		"that the Service selects": {
			func(r *v1alpha1.ABRelease) {
				r.Spec.Rollout.Analysis.ControlPodLabels = map[string]v1alpha1.LabelValue{"tier": "back"}
			},
			"spec.rollout.analysis.controlPodLabels", "the Service web selects the pods of the clone: give another value to one of app",
		},
		"of an active variation without a Deployment": {
			func(r *v1alpha1.ABRelease) { r.Spec.Variations[0].Workload.Kind = v1alpha1.VariationStatefulSet },
			"spec.variations[stable].workload", "a clone is made from a Deployment: name one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			release := controlled("stable")
			tc.change(release)
			_, err := clone.BodyOf(clone.WithControl(release, v1alpha1.FreshControl), v1alpha1.FreshControl, baseline(t), service, 1)
			refused := (*clone.RefusedError)(nil)
			if !errors.As(err, &refused) || refused.Field != tc.field || refused.Message != tc.text {
				t.Errorf("got %v", err)
			}
		})
	}
}
