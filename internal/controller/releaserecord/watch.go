// SPDX-License-Identifier: Apache-2.0

package releaserecord

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	"github.com/plumbline-dev/plumbline/internal/fairqueue"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/record"
)

// queue is that of the controller.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Register adds the controller to a manager, with one worker.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	begin := source.Func(func(_ context.Context, q queue) error {
		q.Add(reconcile.Request{NamespacedName: surveyKey})
		return nil
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("release-evidence").
		Watches(&v1alpha1.ABRelease{}, r.followReleases(), builder.WithPredicates(decided())).
		Watches(&v1alpha1.ReleaseWork{}, handler.EnqueueRequestsFromMapFunc(releaseOf), builder.WithPredicates(carried())).
		WatchesRawSource(begin).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, NewQueue: fairqueue.ForRequests}).Complete(r)
	if err != nil {
		return fmt.Errorf("registering the controller of the records of releases: %w", err)
	}
	return nil
}

// followReleases looks at each release that changes, and keeps the last state of one that is deleted.
func (r *Reconciler) followReleases() handler.EventHandler {
	add := func(o client.Object, q queue) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if release, is := e.Object.(*v1alpha1.ABRelease); is {
				key := client.ObjectKeyFromObject(release)
				r.mu.Lock()
				r.last[key] = append(r.last[key], release)
				r.mu.Unlock()
			}
			add(e.Object, q)
		},
	}
}

func releaseOf(_ context.Context, o client.Object) []reconcile.Request {
	w, is := o.(*v1alpha1.ReleaseWork)
	if !is {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: w.Namespace, Name: w.Spec.ReleaseName}}}
}

// decided passes changes of the history: the discovery server writes a status each 30 seconds.
func decided() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*v1alpha1.ABRelease)
		now, both := e.ObjectNew.(*v1alpha1.ABRelease)
		return is && both && (before.UID != now.UID || lastLine(before) != lastLine(now))
	}}
}

// line is what tells one line of a history from another.
type line struct {
	number int64
	at     metav1.Time
	event  string
}

func lastLine(r *v1alpha1.ABRelease) line {
	if r.Status.Rollout == nil || len(r.Status.Rollout.History) == 0 {
		return line{}
	}
	last := &r.Status.Rollout.History[len(r.Status.Rollout.History)-1]
	return line{last.Number, last.EventTime, last.Event}
}

// carried passes works that have an intent or an end which they had not before.
func carried() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			w, is := e.Object.(*v1alpha1.ReleaseWork)
			return is && record.IntentKey(w)+record.EndKey(w) != ""
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, is := e.ObjectOld.(*v1alpha1.ReleaseWork)
			now, both := e.ObjectNew.(*v1alpha1.ReleaseWork)
			return is && both && (record.IntentKey(before) != record.IntentKey(now) || record.EndKey(before) != record.EndKey(now))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// Trim leaves of a cached release what its records tell: the executor caches all releases.
func Trim(o any) (any, error) {
	release, is := o.(*v1alpha1.ABRelease)
	if !is {
		return o, nil
	}
	out := &v1alpha1.ABRelease{TypeMeta: release.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: release.Namespace, Name: release.Name, UID: release.UID, ResourceVersion: release.ResourceVersion, Generation: release.Generation,
		CreationTimestamp: release.CreationTimestamp, DeletionTimestamp: release.DeletionTimestamp,
	}}
	if in := release.Spec.Rollout; in != nil {
		out.Spec.Rollout = &v1alpha1.Rollout{RequestedBy: in.RequestedBy}
	}
	if e := release.Status.Effective; e != nil {
		out.Status.Effective = &v1alpha1.EffectiveSplit{Sequence: e.Sequence}
	}
	if in := release.Status.Rollout; in != nil {
		out.Status.Rollout = &v1alpha1.RolloutStatus{Handled: in.Handled, History: in.History}
		if run := in.Run; run != nil {
			out.Status.Rollout.Run = &v1alpha1.RolloutRun{Number: run.Number, State: run.State, Reason: run.Reason}
		}
	}
	return out, nil
}
