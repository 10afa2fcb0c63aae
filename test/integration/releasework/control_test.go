// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// TestAUserWithTheRightGetsAFreshControl makes a control beside the canary, of which neither takes the pods of the
// other one, and scales it to 0 after the run.
func TestAUserWithTheRightGetsAFreshControl(t *testing.T) {
	w := newWorld(t)
	w.mayWrite("alice")
	w.releasedBy("alice")
	startExecutor(t, untouched)
	about := func(s *v1alpha1.ReleaseWorkSpec) { s.Variation = v1alpha1.FreshControl }

	refused := w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1)), about), v1alpha1.WorkRefused, v1alpha1.WorkInvalidSpec)
	if want := "spec.rollout.analysis.control: the release asks for no fresh control: set Fresh"; refused.Status.Message != want {
		t.Errorf("a control that the release does not ask for is refused with %q", refused.Status.Message)
	}
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), w.release))
	w.release.Spec.Rollout.Analysis = &v1alpha1.RolloutAnalysisSpec{Control: v1alpha1.ControlFresh, ControlPodLabels: map[string]v1alpha1.LabelValue{"app": "web-control"}}
	if err := w.As("mallory").Update(w.Ctx(), w.release.DeepCopy()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "set spec.rollout.requestedBy to mallory") {
		t.Errorf("a control in alice's name: %v", err)
	}
	w.Must(w.As("alice").Update(w.Ctx(), w.release))

	w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkSucceeded, "")
	made := w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1)), about), v1alpha1.WorkSucceeded, "")
	web, control, canary := w.Live("web"), w.Live("web-fresh-control"), w.Live("web-canary")
	if diff := cmp.Diff(web.Spec.Template.Spec, control.Spec.Template.Spec); diff != "" {
		t.Errorf("the pods of the control (-stable +control):\n%s", diff)
	}
	if control.Spec.Template.Labels["app"] != "web-control" || control.Labels[v1alpha1.LabelReleaseWork] != string(made.UID) || made.Status.TemplateHash != w.hash("web-fresh-control") {
		t.Errorf("the control is %+v, and the work ended as %+v", control, made.Status)
	}
	for name, pair := range map[string][2]*metav1.LabelSelector{"control": {control.Spec.Selector, canary.Spec.Selector}, "canary": {canary.Spec.Selector, control.Spec.Selector}} {
		own, err := metav1.LabelSelectorAsSelector(pair[0])
		w.Must(err)
		if other := pair[1].MatchLabels; own.Matches(labels.Set(other)) {
			t.Errorf("the selector of the %s takes pods with %v", name, other)
		}
	}
	if owner := metav1.GetControllerOf(control); owner == nil || owner.UID != w.release.UID {
		t.Errorf("the control's owner is %+v", owner)
	}

	w.ended(w.ask(v1alpha1.WorkScale, new(int32(2)), about), v1alpha1.WorkSucceeded, "")
	w.run(3, "RolledBack")
	w.ended(w.ask(v1alpha1.WorkScale, new(int32(0)), about), v1alpha1.WorkSucceeded, "")
	if n := *w.Live("web-fresh-control").Spec.Replicas; n != 0 {
		t.Errorf("the control has %d replicas after its run", n)
	}
}

// A fresh control that was scaled to 0 stayed drift where a user had removed the rollout of its release.
func TestTheEndOfAFreshControlIsAuthorizedWithoutItsRollout(t *testing.T) {
	away := startAssessor(t)
	w := newGuardedWorld(t, "alice")
	w.release = w.releaseOf("alice")
	w.release.Spec.Variations[1] = v1alpha1.Variation{Name: "canary", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web-next"}}
	w.release.Spec.Rollout.Promotion = v1alpha1.PromotionKeepVariation
	w.release.Spec.Rollout.Analysis = &v1alpha1.RolloutAnalysisSpec{Control: v1alpha1.ControlFresh, ControlPodLabels: map[string]v1alpha1.LabelValue{"app": "web-control"}}
	w.Must(w.As("alice").Create(w.Ctx(), w.release))
	w.run(3, "Running")
	startExecutor(t, untouched)
	about := func(s *v1alpha1.ReleaseWorkSpec) { s.Variation = v1alpha1.FreshControl }
	made := w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(2)), about), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web-fresh-control", "alice", 3, made.Name)

	// Before another assessor looks, the discovery server has cleared the status.
	away.Halt(t)
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), w.release))
	w.release.Spec.Rollout = nil
	w.Must(w.As("alice").Update(w.Ctx(), w.release))
	w.ended(w.ask(v1alpha1.WorkScale, new(int32(0)), about), v1alpha1.WorkSucceeded, "")
	w.Must(w.xds.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), w.release))
	w.release.Status.Rollout = nil
	w.Must(w.xds.Status().Update(w.Ctx(), w.release))
	startAssessor(t)
	w.Until("web-fresh-control", "the control without replicas is authorized", func(b *v1alpha1.Baseline) error {
		if err := guarded.Reads("InSync")(b); err != nil {
			return err
		}
		if a := b.Spec.Authorized; a.Number != 2 || a.By != "alice" || a.Release != nil {
			return fmt.Errorf("authorized is %+v", a)
		}
		return nil
	})
	w.Scale(mallory, "web-fresh-control", 3)
	w.Until("web-fresh-control", "other replicas are a finding", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Findings) != 1 || b.Status.Findings[0].Type != v1alpha1.DriftScale {
			return fmt.Errorf("the findings are %+v", b.Status.Findings)
		}
		return nil
	})
}
