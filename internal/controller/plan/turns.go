// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// atOnce is how many plans of a policy a change wakes at once. A policy has one operation under way by default.
	atOnce = 10
	// apart is the time between the plans of a policy that come after these. Each look reads
	// the ledgers and the policy, so a thousand plans that wait must not look at each write.
	apart = 200 * time.Millisecond
)

// Turn is a plan that a change wakes, and how long after the change.
type Turn struct {
	reconcile.Request
	After time.Duration
}

// Wake returns the plans that a change of an object wakes.
type Wake func(context.Context, client.Object) []Turn

// takeTurns has plans that wait look in the order of their age: a place that was given back is for the
// oldest plan of a policy. The plans of one policy delay those of no other.
func takeTurns(waiting []*v1alpha1.RemediationPlan) []Turn {
	slices.SortFunc(waiting, func(a, b *v1alpha1.RemediationPlan) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	before := map[string]int{}
	turns := make([]Turn, 0, len(waiting))
	for _, p := range waiting {
		policy := p.Spec.Plan.Policy.UID
		turns = append(turns, Turn{requestOf(p), time.Duration(max(before[policy]-atOnce+1, 0)) * apart})
		before[policy]++
	}
	return turns
}

// takeNone has plans look at once, as they have to be ended or held back.
func takeNone(woken []*v1alpha1.RemediationPlan) []Turn {
	turns := make([]Turn, 0, len(woken))
	for _, p := range woken {
		turns = append(turns, Turn{Request: requestOf(p)})
	}
	return turns
}

func requestOf(p *v1alpha1.RemediationPlan) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// byTurns enqueues the plans that a change wakes. A plan that is in the queue already keeps the earlier
// of its two times, so a row of changes delays no plan.
func byTurns(wake Wake) handler.EventHandler {
	enqueue := func(ctx context.Context, changed client.Object, q queue) {
		for _, t := range wake(ctx, changed) {
			if t.After == 0 {
				q.Add(t.Request)
				continue
			}
			q.AddAfter(t.Request, t.After)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}
