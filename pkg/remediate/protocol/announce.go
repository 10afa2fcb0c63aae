// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ends ends the plan. The same status says that the end is not announced yet: an executor
// that does not hear the answer, or dies, leaves that for whoever reads the plan next.
func (s *State) ends(n *v1alpha1.RemediationPlanStatus, as v1alpha1.PlanPhase) {
	n.Phase, n.CompletionTime = as, s.at()
	s.announced(n, metav1.ConditionFalse, "Pending", "the end of the plan is not announced yet")
}

// announce has the end of a plan announced at least once, and says in the plan when that
// is done. A plan without that condition has a status that no
// executor wrote.
func (s *State) announce() Effect {
	c := meta.FindStatusCondition(s.Plan.Status.Conditions, v1alpha1.ConditionAnnounced)
	if c == nil || c.Status == metav1.ConditionTrue {
		if e := s.copyEffects(); e != nil {
			return e
		}
		return Done{} // the end of an assessment wakes the plan
	}
	if !s.Facts.Announced {
		return Announce{}
	}
	return s.write(func(n *v1alpha1.RemediationPlanStatus) {
		s.hold(n)
		s.announced(n, metav1.ConditionTrue, "Announced", "the end of the plan is announced")
	})
}

// hold makes a plan that has ended ours, so that each of its statuses names its executor.
func (s *State) hold(n *v1alpha1.RemediationPlanStatus) {
	if n.Holder != s.Holder {
		n.Epoch, n.Holder = n.Epoch+1, s.Holder
	}
}

func (s *State) announced(n *v1alpha1.RemediationPlanStatus, is metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&n.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionAnnounced, Status: is, Reason: reason, Message: message,
		ObservedGeneration: s.Plan.Generation, LastTransitionTime: *s.at(),
	})
}
