// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/drift"
	"github.com/plumbline-dev/plumbline/pkg/report"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

const (
	// groupWait is how long a drift waits for others of the same cause.
	groupWait = 10 * time.Second
	// groupInterval is the interval of a guard that says none.
	groupInterval = 5 * time.Minute
	// silenceAgain bounds the time to the next look at a namespace that is silent.
	silenceAgain = 24 * time.Hour
)

// Drifts tells people about the drift of guarded objects by the channels of guards. It keeps the
// drift that people know in memory: see [drift.KnownAtStart].
type Drifts struct {
	People       *Notifier
	Environments Environments
	Clock        clock.PassiveClock
	// GroupWait is how long a drift waits for others of the same cause; 10 seconds if zero.
	GroupWait time.Duration

	start sync.Once
	began time.Time // of the first look: a replica that waits for the lease has not begun

	mu sync.Mutex
	// enabled says of each guard that was seen whether it has notifications.
	enabled map[specguard.GuardRef]bool
	// untold are the guards whose notifications were added after the process began.
	untold map[specguard.GuardRef]bool
	groups map[group]*told
}

// group is the objects that one guard selects in one namespace.
type group struct {
	guard     specguard.GuardRef
	namespace string
}

// told is the drift of a group that people know, and the time of the last notification.
type told struct {
	known drift.Known
	last  time.Time
}

// Register adds the controllers of the channels and of the groups to a manager.
func (d *Drifts) Register(mgr ctrl.Manager) error {
	edited := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := errors.Join(
		ctrl.NewControllerManagedBy(mgr).Named("drift-notifier-channels").
			Watches(&v1alpha1.SpecGuard{}, &handler.EnqueueRequestForObject{}, edited).
			Watches(&v1alpha1.ClusterSpecGuard{}, &handler.EnqueueRequestForObject{}, edited).
			Complete(reconcile.Func(d.learnGuard)),
		builder.TypedControllerManagedBy[group](mgr).Named("drift-notifier").
			Watches(&v1alpha1.Baseline{}, handler.TypedFuncs[client.Object, group]{
				CreateFunc: d.enqueueCreated, UpdateFunc: d.enqueueUpdated, DeleteFunc: d.enqueueDeleted,
			}).
			Watches(&v1alpha1.SpecGuard{}, handler.TypedEnqueueRequestsFromMapFunc(d.findGroups), edited).
			Watches(&v1alpha1.ClusterSpecGuard{}, handler.TypedEnqueueRequestsFromMapFunc(d.findGroups), edited).
			Complete(reconcile.TypedFunc[group](d.reconcileGroup)),
	)
	if err != nil {
		return fmt.Errorf("registering the notifier of drift: %w", err)
	}
	return nil
}

// learnGuard takes over the channels of one guard.
func (d *Drifts) learnGuard(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	d.begin()
	ref := specguard.GuardRef{Namespace: request.Namespace, Name: request.Name}
	guard, err := d.readGuard(ctx, ref)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case guard == nil || guard.notifications == nil:
		d.People.forget(guardSource(ref))
	default:
		d.People.learn(guardSource(ref), guard.channels())
	}
	return reconcile.Result{}, nil
}

// reconcileGroup tells the news of one group.
func (d *Drifts) reconcileGroup(ctx context.Context, g group) (reconcile.Result, error) {
	d.begin()
	guard, err := d.readGuard(ctx, g.guard)
	if err != nil {
		return reconcile.Result{}, err
	}
	if guard == nil || guard.notifications == nil {
		d.forgetGroup(g)
		return reconcile.Result{}, nil
	}
	objects, err := d.readObjects(ctx, g)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := d.Clock.Now()
	if until := drift.SilentUntil(guard.notifications.Silences, g.namespace, now); !until.IsZero() {
		return reconcile.Result{RequeueAfter: min(until.Sub(now), silenceAgain)}, nil
	}
	before := d.recall(g, guard, objects)
	if next := before.last.Add(guard.interval()); next.After(now) {
		return reconcile.Result{RequeueAfter: next.Sub(now)}, nil
	}
	news, known := drift.Compare(before.known, objects)
	after := told{known: known, last: before.last}
	if len(news.Detected)+len(news.Resolved) > 0 {
		after.last = now
		d.tell(guard, g.namespace, news)
	}
	if len(objects) == 0 {
		d.forgetGroup(g)
	} else {
		d.remember(g, after)
	}
	return reconcile.Result{}, nil
}

// tell hands news to the channels of a guard.
func (d *Drifts) tell(guard *guardView, namespace string, news drift.News) {
	ref := notify.GuardRef{Kind: guard.kind, Namespace: guard.ref.Namespace, Name: guard.ref.Name, UID: guard.uid, ObjectNamespace: namespace}
	for _, part := range []struct {
		kind    notify.EventType
		wanted  v1alpha1.Toggle
		objects []drift.Object
	}{
		{notify.DriftDetected, guard.notifications.OnDetected, news.Detected},
		{notify.DriftResolved, guard.notifications.OnResolved, news.Resolved},
	} {
		if len(part.objects) == 0 || part.wanted == v1alpha1.Disabled {
			continue
		}
		e := drift.BuildEvent(part.kind, ref, part.objects, d.Clock.Now())
		if environment, _ := d.Environments.Find(namespace); environment != nil {
			e.Environment = environment.Name
		}
		d.People.tellDrift(guardSource(guard.ref), guard.channels(), e)
	}
}

// tellDrift tells an event about drift by the channels of a guard. It does not wait.
func (n *Notifier) tellDrift(source string, channels []notify.Channel, e notify.Event) {
	// The guard may have come here before the news of its channels did.
	if err := n.deliverer.Notify(e, notify.Route(e, n.learn(source, channels))...); err != nil {
		n.untold(e, err)
	}
}

// begin notes when the first guard or group was looked at.
func (d *Drifts) begin() { d.start.Do(func() { d.began = d.Clock.Now() }) }

// recall returns the drift of a group that people know. At the first look, drift from before the process
// counts as told, unless no process could tell it.
func (d *Drifts) recall(g group, guard *guardView, objects []drift.Object) told {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.groups[g]; known != nil {
		return *known
	}
	since := d.began.Add(-recent - guard.interval())
	if d.untold[g.guard] || drift.HasSilence(guard.notifications.Silences, g.namespace, since) {
		return told{}
	}
	return told{known: drift.KnownAtStart(objects, since)}
}

func (d *Drifts) remember(g group, now told) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.groups == nil {
		d.groups = map[group]*told{}
	}
	d.groups[g] = &now
}

func (d *Drifts) forgetGroup(g group) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.groups, g)
}

// readObjects lists the objects of a group.
func (d *Drifts) readObjects(ctx context.Context, g group) ([]drift.Object, error) {
	var list v1alpha1.BaselineList
	if err := d.People.cached.List(ctx, &list, client.InNamespace(g.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the baselines of namespace %s: %w", g.namespace, err)
	}
	var objects []drift.Object
	for i := range list.Items {
		if slices.Contains(list.Items[i].Status.Guards, g.guard.String()) {
			objects = append(objects, driftOf(&list.Items[i]))
		}
	}
	return objects, nil
}

// driftOf is the drift that a Baseline tells.
func driftOf(b *v1alpha1.Baseline) drift.Object {
	o := drift.Object{
		UID: string(b.UID), State: b.Status.State,
		Target: notify.Target{Kind: b.Spec.Target.Kind, Namespace: b.Namespace, Name: b.Spec.Target.Name, Reason: report.Describe(b)},
	}
	if b.Status.FirstSeenTime != nil {
		o.Since = b.Status.FirstSeenTime.Time
	}
	if b.Status.Severity != nil {
		o.Severity, o.Score = b.Status.Severity.Level, b.Status.Severity.Score
	}
	return o
}
