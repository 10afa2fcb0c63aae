// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crevent "sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// guardView is the part of a guard of either kind that notifications need.
type guardView struct {
	ref           specguard.GuardRef
	kind, uid     string
	notifications *v1alpha1.GuardNotifications
}

// interval is the minimum time between two notifications about one namespace.
func (g *guardView) interval() time.Duration {
	if g.notifications.GroupInterval == nil {
		return groupInterval
	}
	return g.notifications.GroupInterval.Duration
}

// channels are those of the guard. A SpecGuard belongs to a tenant, and each Secret that
// it names has to list its namespace.
func (g *guardView) channels() []notify.Channel {
	return channelsOf(guardSource(g.ref), g.ref.Namespace, g.notifications.Channels)
}

// guardSource differs from all names of policies and from the sources of Environments.
func guardSource(ref specguard.GuardRef) string {
	if ref.Namespace == "" {
		return ref.String()
	}
	return specGuardSource + ref.Namespace + "/" + ref.Name
}

// specGuardSource begins the source of each SpecGuard.
const specGuardSource = "SpecGuard/"

// readGuard reads a guard, and notes whether it has notifications; nil if the guard is gone.
func (d *Drifts) readGuard(ctx context.Context, ref specguard.GuardRef) (*guardView, error) {
	var (
		own     v1alpha1.SpecGuard
		cluster v1alpha1.ClusterSpecGuard
		meta    *metav1.ObjectMeta
		view    = guardView{ref: ref}
		err     error
	)
	name := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if ref.Namespace == "" {
		err = d.People.cached.Get(ctx, name, &cluster)
		view.kind, meta, view.notifications = "ClusterSpecGuard", &cluster.ObjectMeta, cluster.Spec.Notifications
	} else {
		err = d.People.cached.Get(ctx, name, &own)
		view.kind, meta, view.notifications = "SpecGuard", &own.ObjectMeta, own.Spec.Notifications
	}
	switch {
	case apierrors.IsNotFound(err):
		d.forgetGuard(ref)
		return nil, nil //nolint:nilnil // a guard that is gone is no error
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", guardSource(ref), err)
	}
	view.uid = string(meta.UID)
	d.noteGuard(ref, view.notifications != nil, meta.CreationTimestamp.Time)
	return &view, nil
}

// noteGuard notes whether a guard has notifications, and whether they came while this process ran.
func (d *Drifts) noteGuard(ref specguard.GuardRef, enabled bool, created time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.enabled == nil {
		d.enabled, d.untold = map[specguard.GuardRef]bool{}, map[specguard.GuardRef]bool{}
	}
	before, seen := d.enabled[ref]
	if enabled && !before && (seen || !created.Before(d.began)) {
		d.untold[ref] = true
	}
	d.enabled[ref] = enabled
}

func (d *Drifts) forgetGuard(ref specguard.GuardRef) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.enabled, ref)
	delete(d.untold, ref)
}

// isQuiet says that a guard is known to have no notifications.
func (d *Drifts) isQuiet(ref specguard.GuardRef) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	enabled, seen := d.enabled[ref]
	return seen && !enabled
}

// queue takes the groups to look at.
type queue = workqueue.TypedRateLimitingInterface[group]

func (d *Drifts) enqueueCreated(_ context.Context, e crevent.CreateEvent, q queue) {
	d.enqueue(e.Object, q)
}

func (d *Drifts) enqueueDeleted(_ context.Context, e crevent.DeleteEvent, q queue) {
	d.enqueue(e.Object, q)
}

func (d *Drifts) enqueueUpdated(_ context.Context, e crevent.UpdateEvent, q queue) {
	before, ok := e.ObjectOld.(*v1alpha1.Baseline)
	after, okAfter := e.ObjectNew.(*v1alpha1.Baseline)
	if ok && okAfter && isSameDrift(&before.Status, &after.Status) {
		return
	}
	d.enqueue(e.ObjectOld, q)
	d.enqueue(e.ObjectNew, q)
}

// isSameDrift says that two states of an object are the same to people.
func isSameDrift(a, b *v1alpha1.BaselineStatus) bool {
	return a.State == b.State && a.FirstSeenTime.Equal(b.FirstSeenTime) && levelOf(a) == levelOf(b) && slices.Equal(a.Guards, b.Guards)
}

func levelOf(s *v1alpha1.BaselineStatus) v1alpha1.SeverityLevel {
	if s.Severity == nil {
		return ""
	}
	return s.Severity.Level
}

// enqueue enqueues the groups of a Baseline after the wait: a group that is queued keeps its time.
func (d *Drifts) enqueue(object client.Object, q queue) {
	b, ok := object.(*v1alpha1.Baseline)
	if !ok {
		return
	}
	for _, name := range b.Status.Guards {
		if ref := specguard.ParseGuardRef(name, b.Namespace); !d.isQuiet(ref) {
			q.AddAfter(group{guard: ref, namespace: b.Namespace}, cmp.Or(d.GroupWait, groupWait))
		}
	}
}

// findGroups finds the groups of a guard.
func (d *Drifts) findGroups(ctx context.Context, guard client.Object) []group {
	ref := specguard.GuardRef{Namespace: guard.GetNamespace(), Name: guard.GetName()}
	var list v1alpha1.BaselineList
	if err := d.People.cached.List(ctx, &list, client.InNamespace(ref.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		d.People.log.Error(err, "listing the baselines of a guard", "guard", guardSource(ref))
		return nil
	}
	found := map[group]bool{}
	for i := range list.Items {
		if slices.Contains(list.Items[i].Status.Guards, ref.String()) {
			found[group{guard: ref, namespace: list.Items[i].Namespace}] = true
		}
	}
	groups := make([]group, 0, len(found))
	for g := range found {
		groups = append(groups, g)
	}
	return groups
}
