// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// writeCheck tells of a check that found nothing new: one write, of the status.
func (r *Reconciler) writeCheck(ctx context.Context, s *subject) error {
	if s.check == nil || s.baseline == nil {
		return nil
	}
	next := s.baseline.DeepCopy()
	r.setChecks(s, &next.Status)
	if err := asStored(&next.Status); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(next.Status, s.baseline.Status) {
		if err := r.putStatus(ctx, s, next); err != nil {
			return fmt.Errorf("writing the check: %w", err)
		}
		s.baseline = next
		r.memory.wrote(s.key, next)
		r.catchUp(ctx, s)
	}
	r.Agenda.EndCheck(s.key, s.check)
	return nil
}

// tellChecks makes events of what a decision means for checks and for a deletion.
func (r *Reconciler) tellChecks(s *subject, d *decision) {
	version := d.state.Observed.ResourceVersion
	if s.view.Current != nil {
		for _, problem := range s.settings.Problems {
			r.announce(s, d, news{specguard.Event{
				Type: specguard.EventWarning, Reason: reasonCheckSetting, Message: problem.Error(),
			}, version})
		}
	}
	if s.baseline == nil || s.baseline.Status.State != v1alpha1.StateMissing {
		return
	}
	before := meta.FindStatusCondition(d.before.Conditions, ConditionRecreatable)
	after := meta.FindStatusCondition(s.baseline.Status.Conditions, ConditionRecreatable)
	if after == nil || before != nil && before.Reason == after.Reason {
		return
	}
	r.announce(s, d, news{recreationEvent(after), version})
}

func recreationEvent(c *metav1.Condition) specguard.Event {
	event := specguard.Event{Type: specguard.EventWarning, Reason: reasonNotRecreatable, Message: fmt.Sprintf("%s: %s", c.Reason, c.Message)}
	if c.Status == metav1.ConditionTrue {
		event.Type, event.Reason = specguard.EventNormal, reasonRecreatable
	}
	return event
}
