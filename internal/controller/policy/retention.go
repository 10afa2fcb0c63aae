// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// Retention removes plans that ended long ago. With them goes the memory of what
// was tried, so a drift that outlives it may be tried again.
type Retention struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Keep is how long an ended plan stays.
	Keep time.Duration
}

// Register adds the controller to a manager.
func (r *Retention) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("plan-retention").For(&v1alpha1.RemediationPlan{}).Complete(r)
	if err != nil {
		return fmt.Errorf("registering the retention of plans: %w", err)
	}
	return nil
}

// Reconcile removes one plan when its time is over.
func (r *Retention) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	plan := &v1alpha1.RemediationPlan{}
	if err := r.Client.Get(ctx, request.NamespacedName, plan); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	left, ends := r.left(plan)
	if !ends || left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	uid, version := plan.UID, plan.ResourceVersion
	err := r.Client.Delete(ctx, plan, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("removing plan %s: %w", request, err)
	}
	return reconcile.Result{}, nil
}

// left is how long a plan still stays; one that has not ended, or whose evidence
// is not complete, stays as it is.
func (r *Retention) left(plan *v1alpha1.RemediationPlan) (left time.Duration, ends bool) {
	if !protocol.Final(plan.Status.Phase) || plan.Status.CompletionTime == nil || plan.DeletionTimestamp != nil {
		return 0, false
	}
	for i := range plan.Status.Steps {
		if plan.Status.Steps[i].Evidence == nil {
			return 0, false
		}
	}
	return max(0, plan.Status.CompletionTime.Add(r.Keep).Sub(r.Clock.Now())), true
}
