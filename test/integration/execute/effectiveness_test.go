// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
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
