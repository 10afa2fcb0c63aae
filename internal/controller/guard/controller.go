// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// askAgain is how soon a kind that the API server does not serve is looked for
// again: a CustomResourceDefinition takes a few seconds to be served.
const askAgain = 3 * time.Second

// all is the one request: what is guarded is a question about all guards together.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Watcher starts and stops watches; *kube.Tracker is one.
type Watcher interface {
	Watch(ctx context.Context, resources []kube.Resource)
}

// Controller keeps the snapshot of the guards and the watches it needs.
type Controller struct {
	Client client.Client
	// Guards reads guards, exceptions and namespaces; see [guards.NewReader].
	Guards  client.Reader
	Clock   clock.PassiveClock
	Watcher Watcher
	// Excluded namespaces are never guarded.
	Excluded []string
	System   specguard.System
	// Registered are the resources that the installation registers; their versions are
	// those in which objects are judged.
	Registered []schema.GroupVersionResource
	// Changed is called after a new snapshot is in force, with the scopes that differ from
	// the snapshot before; set before Register.
	Changed func(guards.Scopes)

	current atomic.Pointer[guards.Snapshot]
	last    guards.Input
	// changedAt is when the snapshot in force was stored.
	changedAt time.Time
	// lifetime ends the watches; reconcile contexts end too early for that.
	lifetime context.Context
}

// Snapshot returns what is in force, nil before the first computation.
func (c *Controller) Snapshot() *guards.Snapshot { return c.current.Load() }

// Register adds the controller to a manager. The watches live as long as lifetime.
func (c *Controller) Register(lifetime context.Context, mgr ctrl.Manager) error {
	c.lifetime = lifetime
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{all}
	})
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	// Our own status writes change nothing here.
	specs := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("guard").
		Watches(&v1alpha1.SpecGuard{}, toAll, specs).
		Watches(&v1alpha1.ClusterSpecGuard{}, toAll, specs).
		WatchesRawSource(guards.WatchExceptions(mgr.GetAPIReader(), source.Kind(mgr.GetCache(), client.Object(&v1alpha1.SpecGuardException{}), toAll, predicate.GenerationChangedPredicate{}))).
		WatchesMetadata(namespaces, toAll).
		Complete(c)
	if err != nil {
		return fmt.Errorf("registering the guard controller: %w", err)
	}
	return nil
}

// Reconcile computes a new snapshot, puts it in force and adjusts the watches. The first
// edit of a guard counts at once, and edits that follow are collected.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	in, err := c.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if after := c.postpone(&in); after > 0 {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	before := c.current.Load()
	snapshot, err := guards.Build(in, c.Client.RESTMapper(), c.Clock.Now())
	if err != nil {
		// The last good snapshot stays in force.
		return reconcile.Result{}, fmt.Errorf("compiling the guards: %w", err)
	}
	if changed := snapshot.Follow(before, c.last, in, c.expired(before)); len(changed) > 0 {
		c.last, c.changedAt = in, c.Clock.Now()
		c.current.Store(snapshot)
		c.Watcher.Watch(c.lifetime, snapshot.Watched()) //nolint:contextcheck // watches outlive this call
		if c.Changed != nil {
			c.Changed(changed)
		}
	}
	return reconcile.Result{RequeueAfter: c.again(snapshot)}, nil
}

func (c *Controller) read(ctx context.Context) (guards.Input, error) {
	in, err := guards.ReadInput(ctx, c.Guards, c.Excluded, c.System)
	in.Registered = c.Registered
	return in, err
}

// expired says whether a suspension ended since the snapshot was made.
func (c *Controller) expired(before *guards.Snapshot) bool {
	return before != nil && !before.NextExpiry.IsZero() && !c.Clock.Now().Before(before.NextExpiry)
}

// again says when to compute anew without an event.
func (c *Controller) again(s *guards.Snapshot) time.Duration {
	var after time.Duration
	if s.Again {
		after = askAgain
	}
	now := c.Clock.Now()
	if until, ok := s.Set.NextExpiry(now); ok {
		left := until.Sub(now)
		if after == 0 || left < after {
			after = left
		}
	}
	return after
}
