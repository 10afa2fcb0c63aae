// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// Recall tells again, when an executor begins to lead, how the plans ended that
// ended lately: the process before it may have died before its channels sent that. Who
// tells must know what was told, or everybody hears it twice. An end that no process has
// announced is told by Observer.Ended.
type Recall struct {
	Plans    client.Reader
	Observer *Observer
	// Since is how long ago a plan may have ended.
	Since time.Duration
	Log   logr.Logger
}

// Start implements manager.Runnable; only the leader does, with its caches synced.
func (r *Recall) Start(ctx context.Context) error {
	var plans v1alpha1.RemediationPlanList
	if err := r.Plans.List(ctx, &plans); err != nil {
		r.Log.Error(err, "listing plans to tell how the last ones ended")
		return nil
	}
	earliest := r.Observer.Time.Now().Add(-r.Since)
	for i := range plans.Items {
		plan := &plans.Items[i]
		if at := plan.Status.CompletionTime; at == nil || at.Time.Before(earliest) {
			continue
		}
		if kind, tells := endOf(plan.Status.Phase); tells {
			r.Observer.told(ctx, plan, kind, "")
		}
	}
	return nil
}

// endOf is what is told of a plan that ended in a phase, if anything is.
func endOf(phase v1alpha1.PlanPhase) (notify.EventType, bool) {
	switch phase {
	case v1alpha1.PlanSucceeded:
		return notify.PlanCompleted, true
	case v1alpha1.PlanFailed, v1alpha1.PlanPartialSuccess, v1alpha1.PlanSkipped:
		return notify.PlanFailed, true
	case v1alpha1.PlanCreated, v1alpha1.PlanScheduled, v1alpha1.PlanDeferred, v1alpha1.PlanRunning,
		v1alpha1.PlanPaused, v1alpha1.PlanSealing, v1alpha1.PlanCanceled, v1alpha1.PlanSuperseded:
	}
	return "", false
}
