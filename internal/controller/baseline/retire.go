// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// release is for an object that no guard in force selects. Its Baseline stays
// as it is while a guard that exists selects it (suspended, or out of order), and
// for the retention time after the last one is gone: a guard that is
// removed and made again must not take what drifted meanwhile for authorized.
func (r *Reconciler) release(ctx context.Context, s *subject) (reconcile.Result, error) {
	r.Agenda.Forget(s.key)
	if s.baseline == nil {
		r.Objects.Settle(s.key, s.view.Pending)
		r.forget(s.key)
		return reconcile.Result{}, nil
	}
	reason, message := v1alpha1.ReasonNotGuarded, "no guard selects the object any more"
	if len(s.selecting) > 0 {
		reason, message = reasonSuspended, "its guards are suspended or not active; the object is not compared"
	}
	if err := r.markReleased(ctx, s, reason, message); err != nil {
		return r.failed(ctx, s, err)
	}
	left := r.retentionLeft(s, reason)
	if left < 0 {
		if err := r.removeBaseline(ctx, s, &decision{}); err != nil {
			return r.failed(ctx, s, err)
		}
		r.forget(s.key)
		left = 0
	}
	r.Objects.Settle(s.key, s.view.Pending)
	return reconcile.Result{RequeueAfter: left}, nil
}

// forget lets go of all that this process knows of an object that has no Baseline any
// more. A decision that was under way when its Baseline was removed may have noted some
// of that once more.
func (r *Reconciler) forget(key kube.Key) {
	r.memory.forget(key)
	r.Agenda.Forget(key)
	r.Metrics.forget(key)
	r.Metrics.noteQuarantine(key, nil)
}

func (r *Reconciler) markReleased(ctx context.Context, s *subject, reason, message string) error {
	next := s.baseline.DeepCopy()
	conditions := condition.Set{Conditions: &next.Status.Conditions, Generation: next.Generation, Now: s.now}
	conditions.Unknown(reason, message)
	switch {
	case reason == v1alpha1.ReasonNotGuarded:
		next.Status.State = v1alpha1.StateNotGuarded
	case next.Status.State == v1alpha1.StateNotGuarded: // guards select it again, and do not compare yet
		next.Status.State = v1alpha1.StateUnknown
	}
	s.endQuarantine(&decision{}, &next.Status)
	setDegraded(conditions, &next.Status)
	setAcceptanceAllowed(next, &decision{}, s.now)
	next.Status.ObservedGeneration = next.Generation
	next.Status.NextCheckTime = nil
	conditions.False(ConditionRecreatable, reason, "Plumbline does not guard the object")
	if ready := readyOf(s.baseline); ready != nil && ready.Status == metav1.ConditionUnknown && ready.Reason != reason {
		// The status stays Unknown, but the time of the release is counted anew.
		readyOf(next).LastTransitionTime = metav1.NewTime(s.now)
	}
	r.Metrics.forget(s.key)
	if sameStatus(&next.Status, &s.baseline.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, next, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	s.baseline = next
	r.Metrics.noteQuarantine(s.key, next)
	r.memory.distrust(s.key, next)
	return nil
}

// retentionLeft is how long the Baseline of an unguarded object still stays:
// zero means for ever, negative that the time is over.
func (r *Reconciler) retentionLeft(s *subject, reason string) time.Duration {
	ready := readyOf(s.baseline)
	if reason != v1alpha1.ReasonNotGuarded || ready == nil {
		return 0
	}
	left := ready.LastTransitionTime.Add(r.Config.Retention).Sub(s.now)
	if left == 0 {
		return -1
	}
	return left
}

func readyOf(b *v1alpha1.Baseline) *metav1.Condition {
	return meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
}
