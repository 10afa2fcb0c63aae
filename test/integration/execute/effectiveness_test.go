// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// assessesEffects has an assessor assess the effect of plans.
func assessesEffects(s *assessor.Setup) { s.Effectiveness.Enabled = true }

// measuredShortly has a policy measure for as short as a policy may.
func measuredShortly(s *v1alpha1.RemediationPolicySpec) {
	s.Safety.Cooldown = &metav1.Duration{Duration: 10 * time.Second}
	s.Effectiveness.Stabilization = &metav1.Duration{Duration: 10 * time.Second}
	s.Health.Stabilization = &metav1.Duration{}
}

// end is how an assessment ended.
type end struct {
	Phase     v1alpha1.AssessmentPhase
	Reason    v1alpha1.AssessmentReason
	Verdict   v1alpha1.EffectVerdict
	Score     int32 // -1 for none
	Integrity v1alpha1.SpecIntegrity
}

func endOf(a *v1alpha1.EffectivenessAssessment) end {
	s := &a.Status
	e := end{s.Phase, s.Reason, s.Verdict, -1, s.Integrity}
	if s.Score != nil {
		e.Score = *s.Score
	}
	return e
}

// assessment reads the assessment of a step.
func (w *world) assessment(plan *v1alpha1.RemediationPlan, step int32) (*v1alpha1.EffectivenessAssessment, error) {
	a := &v1alpha1.EffectivenessAssessment{}
	key := client.ObjectKey{Namespace: w.Name, Name: effect.NameOf(plan.Name, step)}
	return a, admin.Get(w.t.Context(), key, a)
}

// assessed waits until the assessment of a step is as the check wants it.
func (w *world) assessed(plan *v1alpha1.RemediationPlan, step int32, what string, check func(*v1alpha1.EffectivenessAssessment) bool) *v1alpha1.EffectivenessAssessment {
	w.t.Helper()
	var found *v1alpha1.EffectivenessAssessment
	w.Eventually(what, func() (err error) {
		if found, err = w.assessment(plan, step); err != nil {
			return err
		}
		if !check(found) {
			return fmt.Errorf("it is %+v: %s", endOf(found), found.Status.Message)
		}
		return nil
	})
	return found
}

func hasEnded(a *v1alpha1.EffectivenessAssessment) bool { return effect.Phase(a.Status.Phase).Ended() }

func stabilizes(a *v1alpha1.EffectivenessAssessment) bool {
	return a.Status.Phase == v1alpha1.AssessmentStabilizing && a.Status.Integrity == v1alpha1.IntegrityUnchanged
}

// effectCase is a repair, and what becomes of it.
type effectCase struct {
	// guard changes the guard of the world.
	guard []func(*v1alpha1.SpecGuard)
	// repair leads to a plan that has ended.
	repair func(*world) *v1alpha1.RemediationPlan
	// after happens while the assessment stabilizes; nil for nothing.
	after func(*world)
	want  end
	says  string
}

// reconciled has a drifted Deployment put back.
func reconciled(w *world) *v1alpha1.RemediationPlan {
	w.Drifted("web")
	return w.Ended(w.plan(w.policy(measuredShortly), "web"))
}

func effective() end {
	return end{v1alpha1.AssessmentCompleted, v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged}
}

func drifted() end {
	return end{v1alpha1.AssessmentCompleted, v1alpha1.AssessedSpecDrift, v1alpha1.VerdictInvalidated, 0, v1alpha1.IntegrityDrifted}
}

// One assessor and one executor measure all cases beside each other: a policy measures for 10 seconds at least.
func TestTheEffectOfRepairs(t *testing.T) {
	tests := map[string]effectCase{
		"a repair after which all pods are ready is effective": {repair: reconciled, want: effective(), says: "the write is in effect",
			after: func(w *world) { w.Pods("web", remediation.PodReady, remediation.PodReady) }},
		"a repair after which pods crash is ineffective": {repair: reconciled, says: "crash loop",
			after: func(w *world) { w.Pods("web", remediation.PodReady, remediation.PodCrashLooping) },
			want:  end{v1alpha1.AssessmentCompleted, v1alpha1.AssessedFull, v1alpha1.VerdictIneffective, 0, v1alpha1.IntegrityUnchanged}},
		"a fix that a bot undoes is invalidated": {repair: reconciled, want: drifted(), says: "another writer has changed the target",
			after: func(w *world) { w.SetImage(mallory, "web", remediation.EvilImage) }},
		"a fix whose target is deleted is invalidated": {repair: reconciled, want: drifted(), says: "the target is gone",
			after: func(w *world) { w.Delete(mallory, "web") }},
	}
	startAssessor(t, assessesEffects)
	startExecutor(t, newEvidence(t))
	t.Run("cases", func(t *testing.T) {
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.Rollouts()
				w.UnderGuard(tc.guard...)
				plan := tc.repair(w)
				if tc.after != nil {
					w.assessed(plan, 0, "the assessment stabilizes", stabilizes)
					tc.after(w)
				}
				a := w.assessed(plan, 0, "the assessment has ended", hasEnded)
				if diff := cmp.Diff(tc.want, endOf(a)); diff != "" || !strings.Contains(a.Status.Message, tc.says) {
					t.Errorf("the end differs (-want +got):\n%s%s", diff, a.Status.Message)
				}
			})
		}
	})
}

