// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// Register adds the controller to a manager.
func (o *Opener) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("assessment-opener").
		For(&v1alpha1.RemediationPlan{}, builder.WithPredicates(stepsEnded())).
		WithOptions(controller.Options{RateLimiter: retries()}).Complete(o)
	if err != nil {
		return fmt.Errorf("registering the controller that begins assessments: %w", err)
	}
	return nil
}

// retries bounds the wait after failures: a deadline must not pass because the API server was away for a while.
func retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](triedSoon, triedAgain)
}

// stepsEnded are plans of which another number of steps has ended than before.
func stepsEnded() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return countEnded(e.Object) > 0 },
		UpdateFunc:  func(e event.UpdateEvent) bool { return countEnded(e.ObjectOld) != countEnded(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func countEnded(object client.Object) (n int) {
	plan, is := object.(*v1alpha1.RemediationPlan)
	if !is {
		return 0
	}
	for i := range plan.Status.Steps {
		if hasEnded(plan.Status.Steps[i].State) {
			n++
		}
	}
	return n
}

// byBaseline indexes the assessments that have not ended.
const byBaseline = "baseline"

// Register adds the controller to a manager. A change of an assessment's own status is no news, and a change of
// a Baseline is news only to the assessments of its object that have not ended.
func (r *Reconciler) Register(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.EffectivenessAssessment{}, byBaseline, indexBaseline); err != nil {
		return fmt.Errorf("indexing assessments: %w", err)
	}
	watches := ctrl.NewControllerManagedBy(mgr).Named("assessment").
		For(&v1alpha1.EffectivenessAssessment{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Baseline{}, handler.EnqueueRequestsFromMapFunc(r.ofBaseline), builder.WithPredicates(observesAnother())).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.MaxConcurrent, RateLimiter: retries()})
	if r.Runs != nil {
		watches.Watches(&v1alpha1.ABRelease{}, handler.EnqueueRequestsFromMapFunc(ofRelease), builder.WithPredicates(servesByAnother()))
	}
	if err := watches.Complete(r); err != nil {
		return fmt.Errorf("registering the controller of assessments: %w", err)
	}
	return nil
}

func indexBaseline(object client.Object) []string {
	a, is := object.(*v1alpha1.EffectivenessAssessment)
	if !is || effect.Phase(a.Status.Phase).Ended() {
		return nil
	}
	return []string{a.Spec.Target.BaselineName}
}

// observesAnother are Baselines that speak of another state of their object than before.
func observesAnother() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isOne := e.ObjectOld.(*v1alpha1.Baseline)
			after, isOther := e.ObjectNew.(*v1alpha1.Baseline)
			if !isOne || !isOther {
				return false
			}
			a, b := &before.Status.Observed, &after.Status.Observed
			return a.UID != b.UID || a.Hash != b.Hash || a.FullHash != b.FullHash
		},
	}
}

func (r *Reconciler) ofBaseline(ctx context.Context, baseline client.Object) []reconcile.Request {
	var found v1alpha1.EffectivenessAssessmentList
	if err := r.Client.List(ctx, &found, client.InNamespace(baseline.GetNamespace()), client.MatchingFields{byBaseline: baseline.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		r.Log.Error(err, "listing the assessments of a Baseline", "namespace", baseline.GetNamespace(), "baseline", baseline.GetName())
		return nil
	}
	requests := make([]reconcile.Request, 0, len(found.Items))
	for i := range found.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: found.Items[i].Namespace, Name: found.Items[i].Name}})
	}
	return requests
}
