// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

func assessesEffects(s *assessor.Setup) { s.Effectiveness.Enabled = true }

// pairReleased makes a release between Deployments web and web-next, in the name of alice.
func (w *world) pairReleased() {
	w.t.Helper()
	w.Deploy(guarded.CI, "web-next")
	w.release = w.releaseOf("alice")
	w.release.Spec.Variations[1] = v1alpha1.Variation{Name: "canary", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web-next"}}
	w.release.Spec.Rollout.Promotion = v1alpha1.PromotionKeepVariation
	w.Must(w.As("alice").Create(w.Ctx(), w.release))
	w.t.Cleanup(func() { // the executors of later tests record nothing of it
		if err := admin.Delete(context.WithoutCancel(w.t.Context()), w.release); client.IgnoreNotFound(err) != nil {
			w.t.Errorf("deleting the release: %v", err)
		}
	})
}

// historyLine is a line of a history, so long ago.
func historyLine(number, run int64, ago time.Duration, event rollout.EventName, percent int32) v1alpha1.RolloutEvent {
	p := v1alpha1.Percent(percent)
	return v1alpha1.RolloutEvent{
		Number: number, Run: run, EventTime: metav1.NewTime(time.Now().Add(-ago)), Event: string(event), TrafficPercentage: &p, Message: "told",
	}
}

// endRun ends a run as the discovery server does. Web serves unless the run promotes web-next.
func (w *world) endRun(number int64, state v1alpha1.RunState, active v1alpha1.VariationName, history ...v1alpha1.RolloutEvent) {
	w.t.Helper()
	w.Must(w.xds.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), w.release))
	percent := v1alpha1.Percent(100)
	w.release.Status.ActiveVariation = active
	w.release.Status.Rollout = &v1alpha1.RolloutStatus{History: history, Run: &v1alpha1.RolloutRun{
		Number: number, State: state, Author: "alice",
		From:        v1alpha1.VariationRevision{Variation: "stable", Hash: w.hash("web")},
		To:          v1alpha1.VariationRevision{Variation: "canary", Hash: w.hash("web-next")},
		AutoAdvance: v1alpha1.Enabled, RollbackOnFailure: v1alpha1.Enabled, HealthCheckIntervalSeconds: 30, StartTime: metav1.Now(),
		Stages: []v1alpha1.RolloutStageStatus{{
			Number: 1, State: "Succeeded", TrafficPercentage: &percent, DurationSeconds: new(int64(0)), HealthThreshold: &percent, RequireApproval: v1alpha1.Disabled,
		}},
	}}
	w.Must(w.xds.Status().Update(w.Ctx(), w.release))
}

// assessed waits until the assessment of a run is as the check wants it.
func (w *world) assessed(run int64, what string, check func(*v1alpha1.EffectivenessAssessment) bool) *v1alpha1.EffectivenessAssessment {
	w.t.Helper()
	a := &v1alpha1.EffectivenessAssessment{}
	w.Eventually(fmt.Sprintf("the assessment of run %d %s", run, what), func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKey{Namespace: w.Name, Name: effect.NameOfRun("web", run)}, a); err != nil {
			return err
		}
		if !check(a) {
			return fmt.Errorf("it is %+v", a.Status)
		}
		return nil
	})
	return a
}

func hasEnded(a *v1alpha1.EffectivenessAssessment) bool { return effect.Phase(a.Status.Phase).Ended() }

func stabilizes(a *v1alpha1.EffectivenessAssessment) bool {
	return a.Status.Phase == v1alpha1.AssessmentStabilizing && a.Status.Integrity == v1alpha1.IntegrityUnchanged
}

// runOutcome is how the assessment of a run ended.
type runOutcome struct {
	Action  v1alpha1.AssessedAction
	Reason  v1alpha1.AssessmentReason
	Verdict v1alpha1.EffectVerdict
	Target  string
}

func outcomeOf(a *v1alpha1.EffectivenessAssessment) runOutcome {
	return runOutcome{a.Spec.Action, a.Status.Reason, a.Status.Verdict, a.Spec.Target.Name}
}

// TestTheEffectOfRuns goes through the ends of three runs, with the rights that the chart gives the assessor. The
// first run ended so long ago that its workload counts as stabilized.
func TestTheEffectOfRuns(t *testing.T) {
	startAssessor(t, assessesEffects)
	w := newWorld(t)
	w.mayWrite("alice")
	w.UnderGuard(trusts("alice"))
	w.Rollouts()
	w.pairReleased()
	w.UntilIs("web", "InSync")
	w.UntilIs("web-next", "InSync")
	w.Pods("web-next", remediation.PodReady, remediation.PodReady)

	first := []v1alpha1.RolloutEvent{
		historyLine(1, 3, 20*time.Minute, rollout.RunCreated, 0), historyLine(2, 3, 10*time.Minute, rollout.StageStarted, 100), historyLine(3, 3, 6*time.Minute, rollout.RunPromoted, 100),
	}
	w.endRun(3, "Completed", "canary", first...)
	promoted := w.assessed(3, "has ended", hasEnded)
	want := runOutcome{v1alpha1.AssessedPromote, v1alpha1.AssessedFull, v1alpha1.VerdictEffective, "web-next"}
	if diff := cmp.Diff(want, outcomeOf(promoted)); diff != "" {
		t.Errorf("the promotion (-want +got):\n%s%s", diff, promoted.Status.Message)
	}
	if owner := promoted.OwnerReferences; len(owner) != 1 || owner[0].UID != w.release.UID || promoted.Spec.Signal.Kind != "Service" || promoted.Spec.Target.UID != string(w.Live("web-next").UID) {
		t.Errorf("it is owned by %+v, and is about %+v and %+v", owner, promoted.Spec.Target, promoted.Spec.Signal)
	}

	second := append(slices.Clone(first), historyLine(4, 4, time.Minute, rollout.RunCreated, 0), historyLine(5, 4, time.Minute, rollout.StageStarted, 10), historyLine(6, 4, 0, rollout.RunRolledBack, 0))
	w.endRun(4, "RolledBack", "stable", second...)
	w.assessed(4, "stabilizes", stabilizes)
	w.SetImage(mallory, "web", remediation.EvilImage)
	undone := w.assessed(4, "has ended", hasEnded)
	want = runOutcome{v1alpha1.AssessedRollback, v1alpha1.AssessedSpecDrift, v1alpha1.VerdictInvalidated, "web"}
	if diff := cmp.Diff(want, outcomeOf(undone)); diff != "" || !strings.Contains(undone.Status.Message, "not the one that the run left") {
		t.Errorf("the rollback (-want +got):\n%s%s", diff, undone.Status.Message)
	}

	third := []v1alpha1.RolloutEvent{historyLine(7, 5, time.Second, rollout.RunCreated, 0), historyLine(8, 5, 0, rollout.RunRolledBack, 0)}
	w.endRun(5, "RolledBack", "stable", append(second, third...)...)
	unmoved := w.assessed(5, "has ended", hasEnded)
	want = runOutcome{v1alpha1.AssessedRollback, v1alpha1.AssessedNoExecution, v1alpha1.VerdictInconclusive, "web"}
	if diff := cmp.Diff(want, outcomeOf(unmoved)); diff != "" {
		t.Errorf("the run without requests (-want +got):\n%s%s", diff, unmoved.Status.Message)
	}

	fourth := []v1alpha1.RolloutEvent{historyLine(9, 6, time.Second, rollout.RunCreated, 0), historyLine(10, 6, 0, rollout.RunRolledBack, 0)}
	w.endRun(6, "RolledBack", "stable", append(third, fourth...)...)
	w.Eventually("the assessments of runs that the history has no more are gone", func() error {
		var left []error
		for _, run := range []int64{3, 4} {
			err := admin.Get(w.Ctx(), client.ObjectKey{Namespace: w.Name, Name: effect.NameOfRun("web", run)}, &v1alpha1.EffectivenessAssessment{})
			if !apierrors.IsNotFound(err) {
				left = append(left, fmt.Errorf("run %d: %w", run, errors.Join(err, errStays)))
			}
		}
		return errors.Join(left...)
	})
	w.assessed(5, "stays", hasEnded)
}

var errStays = errors.New("its assessment is there")
