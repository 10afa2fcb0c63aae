// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// reasonQuarantineEnded is the reason of the event that tells of the end of a quarantine.
const reasonQuarantineEnded specguard.EventReason = "QuarantineEnded"

// endQuarantine ends the quarantine of an object where the status that is about to be written,
// or a person, asks for that. The executor begins quarantines, and the assessor alone ends them.
func (s *subject) endQuarantine(d *decision, next *v1alpha1.BaselineStatus) {
	lift := s.baseline.Spec.Lift
	ended := specguard.JudgeQuarantine(next, lift, s.rules, s.now)
	if ended == nil {
		return
	}
	next.Quarantine, next.EndedQuarantine = nil, ended
	d.events = append(d.events, news{specguard.Event{
		Type: specguard.EventNormal, Reason: reasonQuarantineEnded, Message: describeEnd(ended),
	}, next.Observed.ResourceVersion})
}

// judgeLift notes whether a request to lift a quarantine is answered. One that ends the quarantine
// is cleared after the status that tells of the end: without that status it would be lost.
func (s *subject) judgeLift(d *decision) {
	lift, q := s.baseline.Spec.Lift, s.baseline.Status.Quarantine
	switch {
	case lift == nil:
	case !specguard.Lifts(lift, q):
		d.clearLift = true
	default:
		why := specguard.RefuseLift(lift, s.rules)
		if why != "" {
			d.clearLift, d.refusal = true, why
		}
	}
}

// quarantineUntold says that the conditions do not tell of the quarantine as the executor has
// written it.
func (s *subject) quarantineUntold() bool {
	status := &s.baseline.Status
	if status.Quarantine != nil {
		return !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionDegraded)
	}
	return v1alpha1.IsDegradedFor(status.Conditions, v1alpha1.ReasonQuarantined)
}

func describeEnd(ended *v1alpha1.EndedQuarantine) string {
	switch ended.Reason {
	case v1alpha1.QuarantineInSync:
		return "the quarantine has ended: the object is in sync again"
	case v1alpha1.QuarantineAccepted:
		return "the quarantine has ended: the state of the object was accepted"
	case v1alpha1.QuarantineGone:
		return "the quarantine has ended: the object is gone"
	case v1alpha1.QuarantineReplaced:
		return "the quarantine has ended: another object has the name"
	case v1alpha1.QuarantineNotGuarded:
		return "the quarantine has ended: no guard selects the object any more"
	case v1alpha1.QuarantineLifted:
		return ended.By + " has lifted the quarantine"
	}
	return "the quarantine has ended: " + string(ended.Reason)
}

// degradations are the ways in which an object works less well, the most severe first.
func degradations(status *v1alpha1.BaselineStatus) (known []condition.Degradation) {
	if c := status.Contention; c != nil {
		known = append(known, condition.Degradation{Reason: v1alpha1.ReasonContended, Message: fightMessage(c)})
	}
	if q := status.Quarantine; q != nil {
		known = append(known, condition.Degradation{
			Reason:  v1alpha1.ReasonQuarantined,
			Message: fmt.Sprintf("proxies send the object no new requests since %s, by %s; kubectl plumbline lift ends that", q.StartTime.UTC().Format(time.RFC3339), q.By),
		})
	}
	return known
}
