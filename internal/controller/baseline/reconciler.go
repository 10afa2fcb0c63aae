// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/stamp"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Objects tells what is known of guarded objects; *checks.Ahead does.
type Objects interface {
	checks.Objects
	// Hold adds a reading that is newer than the watch; false when there is no room.
	Hold(key kube.Key, reading checks.Reading, known *kube.Object) bool
}

// Guards tells which guards are in force; *guard.Controller does.
type Guards interface {
	Snapshot() *guards.Snapshot
}

// Environments tells which Environment a namespace belongs to;
// *environment.Controller does.
type Environments interface {
	Of(namespace string) *v1alpha1.Environment
}

// Stamps tells what writer stamps prove; *stamp.Policy does.
type Stamps interface {
	Last() stamp.Incarnation
	Now(context.Context) (stamp.Incarnation, error)
	Stamps(stamp.Incarnation, schema.GroupVersionKind, stamp.Version) specguard.Stamps
	Settled(gvk schema.GroupVersionKind, progress string) string
}

// Kinds tells whether the API server serves /scale of a resource; *kube.Mapper does.
type Kinds interface {
	ServesScale(resource schema.GroupResource) (served, known bool)
}

// Config is what an installation decides.
type Config struct {
	// Rules of pkg/specguard: digest key, stamp source, grace for late records.
	Rules specguard.Config
	// Retention is how long a Baseline stays after its object was retired, or
	// after the last guard let go of it.
	Retention time.Duration
	// UnreadableAfter is how long the watch of a kind may fail before the state
	// of its objects is told to be Unknown.
	UnreadableAfter time.Duration
	// ResyncPeriod is the time between two scheduled checks of an object where no
	// guard and no GuardDefaults say one; nil says nothing either, 0 says never.
	ResyncPeriod *time.Duration
	// DriftInterval is the period of an object that asks for checks without saying how
	// often; a default if zero.
	DriftInterval time.Duration
	// ReleaseExecutor is the user name of the executor that carries ReleaseWorks out; empty where
	// the installation has no rollouts.
	ReleaseExecutor string
	// Executor is the user name of the executor that makes standbys; empty where there is none.
	Executor string
}

// Reconciler keeps the Baseline of each guarded object.
type Reconciler struct {
	// Client writes, and reads Baselines from the cache.
	Client client.Client
	// Live reads past the cache: BaselineRevisions always, Baselines after a conflict.
	Live client.Reader
	// Contents reads objects of which no content is kept, past all caches.
	Contents checks.ObjectReader
	Objects  Objects
	// Agenda is when each object is checked.
	Agenda       *checks.Agenda
	Guards       Guards
	Defaults     Defaults
	Environments Environments
	// Kinds is nil where discovery is not asked.
	Kinds Kinds
	// Stamps is nil where no policy sets them.
	Stamps   Stamps
	Records  *Records
	Recorder events.EventRecorder
	Metrics  *Metrics
	Clock    clock.PassiveClock
	Config   Config

	memory *memory
	bodies *bodyCache
	told   *announcements
	budget *eventBudget
}

// Prepare makes a Reconciler ready; call it once, before the first request.
func (r *Reconciler) Prepare() {
	r.memory = newMemory()
	r.bodies = newBodyCache(maxCachedBodies)
	r.told = newAnnouncements()
	r.budget = newEventBudget()
}

// Reconcile settles everything that is known of one object.
func (r *Reconciler) Reconcile(ctx context.Context, key kube.Key) (reconcile.Result, error) {
	s, wait, err := r.read(ctx, key)
	if err != nil || s == nil {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	r.Metrics.noteQuarantine(s.key, s.baseline)
	if s.unguarded() {
		return r.release(ctx, s)
	}
	if r.nothingNew(s) {
		return r.rest(ctx, s)
	}
	if wait, err := r.loadContent(ctx, s); err != nil || wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	if err := r.complete(ctx, s); err != nil {
		return r.failed(ctx, s, err)
	}
	d, err := r.decide(ctx, s)
	switch {
	case errors.Is(err, kube.ErrNotKept): // dropped since it was looked at
		return reconcile.Result{RequeueAfter: loadAgain}, nil
	case err != nil:
		return r.failed(ctx, s, err)
	}
	if err := r.carryOut(ctx, s, d); err != nil {
		return r.failed(ctx, s, err)
	}
	r.tell(s, d)
	r.plan(s, d)
	r.settle(ctx, s, d)
	return reconcile.Result{RequeueAfter: r.next(s, d)}, nil
}

// rest is for an object with nothing new: at most, that it was checked.
func (r *Reconciler) rest(ctx context.Context, s *subject) (reconcile.Result, error) {
	if err := r.writeCheck(ctx, s); err != nil {
		return r.failed(ctx, s, err)
	}
	r.appoint(s)
	return reconcile.Result{RequeueAfter: r.untilDue(s)}, nil
}

// settle lets go of what was dealt with, once everything is written.
func (r *Reconciler) settle(ctx context.Context, s *subject, d *decision) {
	r.Objects.Settle(s.key, s.view.Pending[:d.settled])
	r.Records.consume(d.joined)
	if d.removed {
		r.memory.forget(s.key)
		r.Agenda.Forget(s.key)
		return
	}
	if s.baseline == nil {
		return
	}
	r.memory.put(s.key, remembered{
		state: d.state, context: s.context, due: d.due, written: s.baseline, asked: s.lastAnnotations(),
	})
	r.catchUp(ctx, s)
	r.Agenda.EndCheck(s.key, s.check)
	r.appoint(s)
}

// catchUp looks whether the cache has the Baseline already that was remembered just now: the event of
// a write may come before the write is remembered, and no other event follows.
func (r *Reconciler) catchUp(ctx context.Context, s *subject) {
	cached := &v1alpha1.Baseline{}
	if err := r.Client.Get(ctx, s.baselineName(), cached, client.UnsafeDisableDeepCopy); err == nil {
		r.memory.caughtUp(s.key, cached)
	}
}

// failed says what a failed step means for the next try. A conflict means that
// somebody else wrote, so everything is read and decided again at once.
func (r *Reconciler) failed(ctx context.Context, s *subject, err error) (reconcile.Result, error) {
	switch {
	case kube.IsUnserved(err):
		r.memory.distrust(s.key, nil)
		return reconcile.Result{}, fmt.Errorf("keeping the baseline of %s: %w", s.key, err)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		r.Metrics.conflicts.Inc()
		if refreshed := r.refresh(ctx, s); refreshed != nil {
			return reconcile.Result{}, errors.Join(err, refreshed)
		}
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	case terminating(err):
		// Nothing can be created in a namespace that is going away, and nothing
		// needs to be.
		r.Objects.Settle(s.key, s.view.Pending)
		r.memory.forget(s.key)
		return reconcile.Result{}, nil
	default:
		r.memory.distrust(s.key, nil)
		return reconcile.Result{}, fmt.Errorf("keeping the baseline of %s: %w", s.key, err)
	}
}

// refresh reads the Baseline past the cache after a conflict.
func (r *Reconciler) refresh(ctx context.Context, s *subject) error {
	live := &v1alpha1.Baseline{}
	err := r.Live.Get(ctx, s.baselineName(), live)
	switch {
	case apierrors.IsNotFound(err):
		r.memory.forget(s.key)
		return nil
	case err != nil:
		return fmt.Errorf("reading the baseline again: %w", err)
	}
	r.memory.distrust(s.key, live)
	return nil
}

// terminating recognizes the refusal to create in a namespace that goes away.
func terminating(err error) bool {
	return apierrors.HasStatusCause(err, "NamespaceTerminating")
}
