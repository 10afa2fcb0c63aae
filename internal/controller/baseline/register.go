// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plumbline-dev/plumbline/internal/fairqueue"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// After a failure an object is tried again soon, and then ever later, up to
// triedAgain: what the API server could not do for an hour it may do now, and no
// event tells. With the library's defaults an object may wait a quarter of an
// hour, and so may the last of 10,000 objects that failed together.
const (
	triedSoon  = 5 * time.Millisecond
	triedAgain = 30 * time.Second
)

// workers is how many objects are assessed at once; one object never by two.
const workers = 4

type queue = workqueue.TypedRateLimitingInterface[kube.Key]

// Trigger makes objects be looked at. It may be used before the controller runs;
// what is asked for then is looked at when it does.
type Trigger struct {
	mu      sync.Mutex
	queue   queue
	waiting map[kube.Key]bool
}

// Look asks to look at an object.
func (t *Trigger) Look(key kube.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look(key)
}

func (t *Trigger) look(key kube.Key) {
	if t.queue != nil {
		t.queue.Add(key)
		return
	}
	if t.waiting == nil {
		t.waiting = map[kube.Key]bool{}
	}
	t.waiting[key] = true
}

// LookLater asks to look at an object after all objects that have news of their own. A
// tenant who edits a guard must not delay the drift of another tenant.
func (t *Trigger) LookLater(key kube.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q, ok := t.queue.(priorityqueue.PriorityQueue[kube.Key]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, key)
		return
	}
	t.look(key)
}

func (t *Trigger) attach(_ context.Context, q queue) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = q
	for key := range t.waiting {
		q.Add(key)
	}
	t.waiting = nil
	return nil
}

// Register adds the controller to a manager: objects come from trigger, and
// Baselines from the cache, so that a request to accept, and the Baseline of an
// object that went away while nobody watched, are seen.
func (r *Reconciler) Register(mgr ctrl.Manager, trigger *Trigger) error {
	c, err := controller.NewTyped("baseline", mgr, controller.TypedOptions[kube.Key]{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[kube.Key](triedSoon, triedAgain),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[kube.Key]) queue {
			return fairqueue.New(name, limiter, func(key kube.Key) string { return key.Namespace })
		},
		Reconciler: r,
		LogConstructor: func(key *kube.Key) logr.Logger {
			log := mgr.GetLogger().WithValues("controller", "baseline")
			if key != nil {
				log = log.WithValues("kind", key.Kind, "namespace", key.Namespace, "name", key.Name)
			}
			return log
		},
	})
	if err != nil {
		return fmt.Errorf("making the baseline controller: %w", err)
	}
	if err := c.Watch(source.TypedFunc[kube.Key](trigger.attach)); err != nil {
		return fmt.Errorf("watching guarded objects: %w", err)
	}
	baselines := source.TypedKind(mgr.GetCache(), &v1alpha1.Baseline{}, r.handler())
	if err := c.Watch(baselines); err != nil {
		return fmt.Errorf("watching baselines: %w", err)
	}
	return nil
}

func (r *Reconciler) handler() handler.TypedEventHandler[*v1alpha1.Baseline, kube.Key] {
	look := func(b *v1alpha1.Baseline, q queue) {
		key := KeyOf(b)
		r.memory.caughtUp(key, b)
		q.Add(key)
	}
	return handler.TypedFuncs[*v1alpha1.Baseline, kube.Key]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1alpha1.Baseline], q queue) {
			look(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.Baseline], q queue) {
			look(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1alpha1.Baseline], q queue) {
			key := KeyOf(e.Object)
			r.forget(key)
			q.Add(key)
		},
	}
}

func groupVersionKind(gvk canon.GVK) schema.GroupVersionKind { return schema.GroupVersionKind(gvk) }
