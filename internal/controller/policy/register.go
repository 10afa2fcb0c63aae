// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// lazily is how long what only moves counts is collected before a policy is looked at.
	lazily = 2 * time.Second
	// After a failure a policy is looked at again soon, and then ever later.
	triedSoon, triedAgain = 50 * time.Millisecond, 30 * time.Second
	// workers is how many policies are looked at at once.
	workers = 2
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// trigger makes all policies be looked at.
type trigger struct {
	mu    sync.Mutex
	queue queue
}

func (t *trigger) attach(_ context.Context, q queue) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = q
	return nil
}

// Look looks at all policies soon, because other guards are in force now.
func (r *Reconciler) Look(ctx context.Context) {
	r.trigger.mu.Lock()
	q := r.trigger.queue
	r.trigger.mu.Unlock()
	if q != nil {
		r.settled(ctx, q)
	}
}

// settled looks at every policy once changes have settled.
func (r *Reconciler) settled(ctx context.Context, q queue) {
	r.settling.note(func() { r.all(ctx, q, 0) })
}

// all looks at every policy. Which of them a change concerns depends on labels of
// namespaces and objects, and finding that out is what a look does.
func (r *Reconciler) all(ctx context.Context, q queue, after time.Duration) {
	var policies v1alpha1.RemediationPolicyList
	if err := r.Client.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		r.Log.Error(err, "listing policies to look at all of them")
		return
	}
	for i := range policies.Items {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: policies.Items[i].Name}}, after)
	}
}

// Register adds the controller to a manager.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("policy").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](triedSoon, triedAgain),
		}).
		For(&v1alpha1.RemediationPolicy{}, builder.WithPredicates(Specs())).
		Watches(&v1alpha1.RemediationRequest{}, handler.EnqueueRequestsFromMapFunc(policyOf)).
		WatchesRawSource(source.Func(r.trigger.attach))
	sources := Sources()
	if r.Effectiveness {
		sources = append(sources, Source{&v1alpha1.EffectivenessAssessment{}, urgencyOfAssessment, nil})
	}
	for _, s := range sources {
		watches := b.Watches
		if _, bare := s.Kind.(*metav1.PartialObjectMetadata); bare {
			watches = b.WatchesMetadata
		}
		b = watches(s.Kind, r.on(s.Urgency), builder.WithPredicates(s.When...))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("registering the policy controller: %w", err)
	}
	return nil
}

// Source is a kind whose changes have all policies looked at.
type Source struct {
	Kind    client.Object
	Urgency Urgency
	// When are the changes that count.
	When []predicate.Predicate
}

// Sources are the kinds that have all policies looked at, beside policies and requests.
func Sources() []Source {
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	specs := []predicate.Predicate{Specs()}
	return []Source{
		{&v1alpha1.Baseline{}, urgencyOfBaseline, nil},
		{&v1alpha1.RemediationPlan{}, urgencyOfPlan, nil},
		{&v1alpha1.Environment{}, always(settleTime), specs},
		{&v1alpha1.GuardDefaults{}, always(settleTime), specs},
		{&v1alpha1.SpecGuard{}, always(lazily), nil},
		{&v1alpha1.ClusterSpecGuard{}, always(lazily), nil},
		{&v1alpha1.RemediationLedger{}, always(lazily), nil},
		{namespaces, always(lazily), nil},
	}
}

// Specs are changes of a spec.
func Specs() predicate.Predicate { return predicate.GenerationChangedPredicate{} }

// Urgency says how soon all policies are to be looked at after a change; before is
// nil for what is new, after for what is gone. Without news it says no.
type Urgency func(before, after client.Object) (time.Duration, bool)

func always(d time.Duration) Urgency {
	return func(client.Object, client.Object) (time.Duration, bool) { return d, true }
}

// on looks at all policies as soon as an urgency says.
func (r *Reconciler) on(how Urgency) handler.EventHandler {
	look := func(ctx context.Context, before, after client.Object, q queue) {
		switch in, news := how(before, after); {
		case !news:
		case in == settleTime:
			r.settled(ctx, q)
		default:
			r.all(ctx, q, in)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { look(ctx, nil, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { look(ctx, e.ObjectOld, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { look(ctx, e.Object, nil, q) },
	}
}
