// SPDX-License-Identifier: Apache-2.0

// One goroutine: the race detector has nothing to say, and takes six times as long.
//go:build !race

package abrelease

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// controlled is a world whose canary, a clone, is compared with a fresh control in its first stage.
func controlled(t *testing.T) (*world, *executor) {
	t.Helper()
	w, e := cloning(t)
	w.Revisions.(*workloads).revisions["web-fresh-control"] = "control"
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.Rollout.Analysis = &v1alpha1.RolloutAnalysisSpec{Control: v1alpha1.ControlFresh, ControlPodLabels: map[string]v1alpha1.LabelValue{"app": "web-control"}}
	})
	return w, e
}

// begin has a run go on until the first stage is in force.
func (e *executor) begin(t *testing.T) *v1alpha1.ABRelease {
	t.Helper()
	e.live(t, 16)
	e.clock.Step(traffic.Returns + time.Second)
	e.live(t, 4)
	return e.looks()
}

// compare has a run go on for a while, in which the fresh control has more failures than the stable variation.
func (e *executor) compare(t *testing.T, failed, failedOfControl uint64) *v1alpha1.ABRelease {
	t.Helper()
	for n := range uint64(9) {
		e.tellsAll(n+1, failed, failedOfControl)
		e.live(t, 3)
	}
	e.live(t, 12)
	return e.looks()
}

func TestACanaryIsComparedWithAFreshControl(t *testing.T) {
	for name, c := range map[string]struct {
		failed, failedOfControl uint64
		control                 v1alpha1.ControlType
		did                     string
		state                   v1alpha1.RunState
	}{
		"a good canary": {
			0, 0, v1alpha1.ControlFresh, "CreateClone 1, CreateClone of fresh-control 1, Scale 5, UpdateBaseline, Scale 0, Scale of fresh-control 0", "Completed",
		},
		"a bad canary": {
			60, 0, v1alpha1.ControlFresh, "CreateClone 1, CreateClone of fresh-control 1, Scale 0, Scale of fresh-control 0", "RolledBack",
		},
		"a canary that is as bad as all that is new": {
			4, 4, v1alpha1.ControlFresh, "CreateClone 1, CreateClone of fresh-control 1", "Running",
		},
		"the same canary beside pods that are warm": {
			4, 4, v1alpha1.ControlStable, "CreateClone 1, Scale 0", "RolledBack",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, e := controlled(t)
			want := "stable 80 / canary 10 / fresh-control 10"
			if c.control == v1alpha1.ControlStable {
				want = "stable 90 / canary 10"
				w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Analysis = nil })
			}
			if r := e.begin(t); r.Status.Split != want {
				t.Fatalf("in force is %q, and the run waits for %+v", r.Status.Split, r.Status.Rollout.Waiting)
			}
			r := e.compare(t, c.failed, c.failedOfControl)
			if did := strings.Join(e.did, ", "); did != c.did {
				t.Errorf("the executor did %q", did)
			}
			run := r.Status.Rollout.Run
			if run.State != c.state {
				t.Errorf("the run is %s, and waits for %+v: %+v", run.State, r.Status.Rollout.Waiting, r.Status.Rollout.Analysis)
			}
			if over := c.state != "Running" && run.FreshControl != nil; over && (r.Status.Split != "stable 100 / canary 0" || *run.FreshControl.Replicas != 0 || e.control != 0) {
				t.Errorf("in force is %q, and the control has %d pods: %+v", r.Status.Split, e.control, run.FreshControl)
			}
			with := v1alpha1.FreshControl
			if c.control == v1alpha1.ControlStable {
				with = "stable"
			}
			if a := r.Status.Rollout.Analysis; len(a.Stages) == 0 && a.Variations[0].Variation != with {
				t.Errorf("the canary is compared with %s", a.Variations[0].Variation)
			}
		})
	}
}

// The rollback of a run with a control is prepared, as that of any run.
func TestAFailureBesideAFreshControlTakesThePreparedSequence(t *testing.T) {
	w, e := controlled(t)
	before := e.begin(t).Status.Effective
	for n := uint64(1); n < 20 && w.looks().Status.Rollout.Run.State == "Running"; n++ {
		w.tellsAll(n, 90, 0)
	}
	after := w.looks().Status
	if after.Rollout.Run.State != "RolledBack" || before.PreparedSequence == 0 || after.Effective.Sequence != before.PreparedSequence {
		t.Errorf("the run is %s with sequence %d, and %d was prepared", after.Rollout.Run.State, after.Effective.Sequence, before.PreparedSequence)
	}
	if after.Split != "stable 100 / canary 0 / fresh-control 0" {
		t.Errorf("in force is %q", after.Split)
	}
}

// A control whose pods are gone gives its requests back, and the run goes on with the stable variation as control.
func TestAFreshControlWithoutPodsIsGivenUp(t *testing.T) {
	w, e := controlled(t)
	e.begin(t)
	e.dead = true
	e.work(t)
	r := w.looks()
	if r.Status.Split != "stable 90 / canary 10 / fresh-control 0" || r.Status.Rollout.Run.FreshControl.ShortTime == nil {
		t.Errorf("in force is %q: %+v", r.Status.Split, r.Status.Rollout.Run.FreshControl)
	}
	w.clock.Step(20 * time.Second)
	r = w.looks()
	if c := r.Status.Rollout.Run.FreshControl; r.Status.Split != "stable 90 / canary 10" || c.CompletionTime == nil || !strings.Contains(c.Message, "0 ready endpoints of 1") {
		t.Errorf("in force is %q: %+v", r.Status.Split, c)
	}
	e.live(t, 4)
	for n := range uint64(9) {
		e.tells(n+1, 0)
		e.live(t, 3)
	}
	if r = e.looks(); r.Status.Rollout.Run.State == "Running" && r.Status.Rollout.Run.Stages[0].PassTime == nil {
		t.Errorf("the stage does not pass beside the stable variation: %+v", r.Status.Rollout.Waiting)
	}
}

// A release whose rollout is removed leaves no pods of the control.
func TestARolloutThatIsRemovedLeavesNoControl(t *testing.T) {
	w, e := controlled(t)
	e.begin(t)
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.Rollout = nil
		r.Spec.Variations[1] = v1alpha1.Variation{Name: "canary", Workload: &v1alpha1.VariationWorkload{Kind: "Deployment", Name: "canary"}}
	})
	e.live(t, 8)
	r := w.looks()
	if e.control != 0 || r.Status.Split != "stable 100 / canary 0" || r.Status.Rollout != nil {
		t.Errorf("the control has %d pods, in force is %q: %+v", e.control, r.Status.Split, r.Status.Rollout)
	}
}

// A strategy of one large step has nothing to compare: the release says so, and no run begins.
func TestAFreshControlThatNoStageNeedsIsRefused(t *testing.T) {
	w, e := controlled(t)
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.Rollout.Strategy.Stages = []v1alpha1.RolloutStage{{TrafficPercentage: new(v1alpha1.Percent(100)), Duration: &metav1.Duration{Duration: time.Minute}}}
	})
	e.live(t, 4)
	r := w.looks()
	c := ""
	for i := range r.Status.Conditions {
		if r.Status.Conditions[i].Type == v1alpha1.ConditionProgressing {
			c = r.Status.Conditions[i].Message
		}
	}
	if r.Status.Rollout.Run != nil || !strings.Contains(c, "spec.rollout.analysis.control: ") || !strings.Contains(c, "set Stable") {
		t.Errorf("the release says %q: %+v", c, r.Status.Rollout.Run)
	}
}
