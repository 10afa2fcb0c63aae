// SPDX-License-Identifier: Apache-2.0

package guarddefaults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/internal/guarddefaults"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/readiness/expression"
)

var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Controller keeps the status of GuardDefaults and answers which are in force.
type Controller struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Changed is told after others came in force; may be nil.
	Changed func()

	rules    expression.Cache
	current  atomic.Pointer[guarddefaults.Active]
	assigned atomic.Bool
}

// Active returns what is in force. It is nil until that is known, and until it is
// known which Environment a namespace belongs to: what was decided without them
// would be decided again a moment later, for every object.
func (c *Controller) Active() *guarddefaults.Active {
	if !c.assigned.Load() {
		return nil
	}
	return c.current.Load()
}

// EnvironmentsAssigned tells that it is known which Environment a namespace
// belongs to.
func (c *Controller) EnvironmentsAssigned() { c.assigned.Store(true) }

// Register adds the controller to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{all}
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("guarddefaults").
		Watches(&v1alpha1.GuardDefaults{}, toAll).
		Watches(&v1alpha1.Environment{}, toAll).
		WatchesRawSource(source.Func(once)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("registering the guard defaults controller: %w", err)
	}
	return nil
}

// once asks at the start: that there are none is to be known too, and no event
// tells it.
func once(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(all)
	return nil
}

// Reconcile ranks all GuardDefaults and writes every status that changes.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var defaults v1alpha1.GuardDefaultsList
	if err := c.Client.List(ctx, &defaults); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing guard defaults: %w", err)
	}
	var environments v1alpha1.EnvironmentList
	if err := c.Client.List(ctx, &environments); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing environments: %w", err)
	}
	known := guarddefaults.NamesOf(environments.Items)
	c.publish(guarddefaults.NewActive(defaults.Items, known))
	verdicts := guarddefaults.Rank(defaults.Items, known)
	var failed []error
	for i := range defaults.Items {
		d := &defaults.Items[i]
		failed = append(failed, c.write(ctx, d, c.withRules(d, verdicts[d.Name])))
	}
	return reconcile.Result{}, errors.Join(failed...)
}

// publish puts into force what differs from before.
func (c *Controller) publish(f *guarddefaults.Active) {
	before := c.current.Load()
	if before != nil && before.MatchesSpecs(f) {
		return
	}
	f.Epoch = 1
	if before != nil {
		f.Epoch = before.Epoch + 1
	}
	c.current.Store(f)
	if c.Changed != nil {
		c.Changed()
	}
}

func (c *Controller) write(ctx context.Context, d *v1alpha1.GuardDefaults, v guarddefaults.Verdict) error {
	next := d.DeepCopy()
	next.Status.ObservedGeneration = d.Generation
	conditions := condition.Set{Conditions: &next.Status.Conditions, Generation: d.Generation, Now: c.Clock.Now()}
	if v.Active && !v.Broken {
		conditions.Ready(v.Reason, v.Message)
	} else {
		conditions.Stalled(v.Reason, v.Message)
	}
	if equality.Semantic.DeepEqual(d.Status, next.Status) {
		return nil
	}
	if err := c.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("writing the status of guard defaults %s: %w", d.Name, err)
	}
	return nil
}

// withRules adds to the verdict on defaults that are in force which of their readiness
// rules cannot be compiled.
func (c *Controller) withRules(d *v1alpha1.GuardDefaults, v guarddefaults.Verdict) guarddefaults.Verdict {
	if !v.Active {
		return v
	}
	var broken []string
	for i := range d.Spec.Readiness {
		if _, err := c.rules.Compile(d.Spec.Readiness[i].Expression); err != nil {
			broken = append(broken, fmt.Sprintf("spec.readiness[%d].expression: %s", i, err))
		}
	}
	if len(broken) == 0 {
		return v
	}
	v.Broken, v.Reason = true, v1alpha1.ReasonInvalidExpression
	v.Message += ", but no object of these kinds is ready: " + strings.Join(broken, "; ")
	return v
}
