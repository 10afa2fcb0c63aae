// SPDX-License-Identifier: Apache-2.0

package abrelease

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

	"github.com/plumbline-dev/plumbline/internal/fairqueue"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Watcher tells of releases of which other endpoints or problems are seen.
type Watcher interface {
	Watch(changed func(release types.NamespacedName)) (stop func())
}

// workers is how many releases are looked at at once: one that waits for a router
// holds no other one up.
const workers = 8

// Register adds the controller to a manager.
func (r *Reconciler) Register(mgr ctrl.Manager, watcher Watcher) error {
	releases := ctrl.NewControllerManagedBy(mgr).
		Named("abrelease").
		For(&v1alpha1.ABRelease{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// The release that goes makes room for the next one.
		Watches(&v1alpha1.ABRelease{}, handler.Funcs{DeleteFunc: r.wakeRivals}).
		WatchesRawSource(sights(watcher)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, NewQueue: fairqueue.ForRequests})
	if r.Revisions != nil {
		releases = releases.Watches(&v1alpha1.RolloutStrategy{}, handler.EnqueueRequestsFromMapFunc(r.findNaming)).
			Watches(&v1alpha1.ReleaseWork{}, handler.EnqueueRequestsFromMapFunc(findAsking))
	}
	if r.Connectors != nil {
		releases = releases.Watches(&v1alpha1.TrafficRouter{}, handler.EnqueueRequestsFromMapFunc(r.findRouted), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	if err := releases.Complete(r); err != nil {
		return fmt.Errorf("registering the controller of releases: %w", err)
	}
	return nil
}

// wakeRivals has every release looked at that asks for what a release had which is gone.
func (r *Reconciler) wakeRivals(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	gone, is := e.Object.(*v1alpha1.ABRelease)
	if !is {
		return
	}
	var all v1alpha1.ABReleaseList
	if err := r.Client.List(ctx, &all, client.InNamespace(gone.Namespace)); err != nil {
		r.Log.Error(err, "listing releases")
		return
	}
	for i := range all.Items {
		other := &all.Items[i]
		if divideOneService(gone, other) || sharedGroup(gone, other) != "" || gone.Spec.SharesRoute(&other.Spec) || rollout.SharedCanary(gone, other) != nil {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
		}
	}
}

// findNaming finds the releases that name a strategy.
func (r *Reconciler) findNaming(ctx context.Context, strategy client.Object) (requests []reconcile.Request) {
	var all v1alpha1.ABReleaseList
	if err := r.Client.List(ctx, &all); err != nil {
		r.Log.Error(err, "listing releases")
		return nil
	}
	for i := range all.Items {
		if in := all.Items[i].Spec.Rollout; in != nil && in.StrategyName == strategy.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}
