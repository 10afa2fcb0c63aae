// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// JudgeQuarantine returns why the quarantine of an object ends, by the status that the Baseline
// is to have; nil while there is none, and while it stays. A state that is Unknown ends nothing:
// no data is never a finding.
func JudgeQuarantine(status *v1alpha1.BaselineStatus, lift *v1alpha1.LiftRequest, rules Rules, now time.Time) *v1alpha1.EndedQuarantine {
	q := status.Quarantine
	if q == nil {
		return nil
	}
	reason := endOfQuarantine(status, q)
	by := ""
	if reason == "" && Lifts(lift, q) && RefuseLift(lift, rules) == "" {
		reason, by = v1alpha1.QuarantineLifted, lift.RequestedBy
	}
	if reason == "" {
		return nil
	}
	return &v1alpha1.EndedQuarantine{Token: q.Token, EndTime: metav1.NewTime(now), Reason: reason, By: by}
}

// endOfQuarantine returns why a quarantine ends without a person; "" while it stays.
func endOfQuarantine(status *v1alpha1.BaselineStatus, q *v1alpha1.Quarantine) v1alpha1.QuarantineEnd {
	observed := &status.Observed
	switch status.State {
	case v1alpha1.StateInSync:
		return v1alpha1.QuarantineInSync
	case v1alpha1.StateMissing, v1alpha1.StateRetired:
		return v1alpha1.QuarantineGone
	case v1alpha1.StateNotGuarded:
		return v1alpha1.QuarantineNotGuarded
	case v1alpha1.StateUnknown:
		if o := status.Oversized; o != nil && o.Hash == observed.Hash {
			return v1alpha1.QuarantineAccepted
		}
	case v1alpha1.StateDrifted:
	}
	if q.UID != "" && observed.UID != "" && observed.UID != q.UID {
		return v1alpha1.QuarantineReplaced
	}
	return ""
}

// Lifts says that a request is for the quarantine in force.
func Lifts(lift *v1alpha1.LiftRequest, q *v1alpha1.Quarantine) bool {
	return lift != nil && q != nil && lift.Token == q.Token && q.Token != ""
}

// RefuseLift returns why the guards do not let the requester lift a quarantine: those who may
// accept may lift. It is empty when the guards let the requester.
func RefuseLift(lift *v1alpha1.LiftRequest, rules Rules) string {
	refusal := rules.mayAccept(Identity{User: lift.RequestedBy, Groups: lift.RequestedByGroups})
	if refusal == "" {
		return ""
	}
	return fmt.Sprintf("%s may not lift the quarantine: %s", lift.RequestedBy, refusal)
}
