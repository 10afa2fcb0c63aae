// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// urgencyOfBaseline: drift that changed is looked at soon, anything else moves
// counts alone, and a check that found nothing new is no news.
func urgencyOfBaseline(before, after client.Object) (time.Duration, bool) {
	was, _ := before.(*v1alpha1.Baseline)
	is, _ := after.(*v1alpha1.Baseline)
	switch {
	case was == nil && is == nil:
		return 0, false
	case was == nil || is == nil:
		return urgencyOf(drifts(was) || drifts(is)), true
	case sameJudgment(was, is):
		return 0, false
	}
	return urgencyOf(drifts(was) || drifts(is)), true
}

func urgencyOf(drift bool) time.Duration {
	if drift {
		return settleTime
	}
	return lazily
}

func drifts(b *v1alpha1.Baseline) bool {
	return b != nil && (b.Status.State == v1alpha1.StateDrifted || b.Status.State == v1alpha1.StateMissing)
}

// sameJudgment says that nothing differs that a plan depends on.
func sameJudgment(a, b *v1alpha1.Baseline) bool {
	x, y := a.Status.DeepCopy(), b.Status.DeepCopy()
	for _, s := range []*v1alpha1.BaselineStatus{x, y} {
		s.LastCheckTime, s.NextCheckTime, s.Conditions, s.ObservedGeneration = nil, nil, nil, 0
		s.Observed.ResourceVersion = ""
	}
	return a.Guarded() == b.Guarded() && acceptWaits(a) == acceptWaits(b) && equality.Semantic.DeepEqual(x, y) && equality.Semantic.DeepEqual(a.Spec.Authorized, b.Spec.Authorized)
}

// acceptWaits says that a person has accepted the present state, and waits for the answer. The answer may
// be no, and then nothing else of the Baseline changes.
func acceptWaits(b *v1alpha1.Baseline) bool { return exec.AcceptWaits(b, b.Status.Observed.Hash) }

// urgencyOfPlan: a plan that came, ended or went changes what is under way. A person who takes the cancellation of
// an ended plan back lets the policy act on its drift again.
func urgencyOfPlan(before, after client.Object) (time.Duration, bool) {
	was, _ := before.(*v1alpha1.RemediationPlan)
	is, _ := after.(*v1alpha1.RemediationPlan)
	if was == nil || is == nil || protocol.Final(was.Status.Phase) != protocol.Final(is.Status.Phase) {
		return settleTime, true
	}
	return settleTime, protocol.Final(is.Status.Phase) && was.Spec.Control.Verb != is.Spec.Control.Verb
}

// urgencyOfAssessment: an object is free again when its assessment ends, or goes.
func urgencyOfAssessment(before, after client.Object) (time.Duration, bool) {
	was, _ := before.(*v1alpha1.EffectivenessAssessment)
	is, _ := after.(*v1alpha1.EffectivenessAssessment)
	if was == nil || is != nil && effect.Phase(was.Status.Phase).Ended() == effect.Phase(is.Status.Phase).Ended() {
		return 0, false
	}
	return settleTime, true
}
