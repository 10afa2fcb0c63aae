// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// FieldManager names the assessor in managedFields.
const FieldManager = "plumbline-assessor"

const (
	// atLeast is how soon an assessment may be looked at again.
	atLeast = 10 * time.Millisecond
	// unknownAgain is how soon one is whose target is unknown, or while the clocks are not compared.
	unknownAgain = 5 * time.Second
	// conflictAgain is how soon one is whose stored version was newer than the one in the cache.
	conflictAgain = 100 * time.Millisecond
	// After a failure an assessment, or a plan, is looked at again soon, and then ever later.
	triedSoon, triedAgain = 50 * time.Millisecond, 30 * time.Second
)

// Time is the API server's time; *servertime.Keeper knows it.
type Time interface {
	Now() time.Time
	// Skew is window.SkewUnknown while the clocks are not compared.
	Skew() time.Duration
}

// Reconciler carries assessments on until they have ended.
type Reconciler struct {
	// Client reads assessments from the cache, and writes their status.
	Client  client.Client
	Targets *Targets
	// Runs looks at what runs of releases left; nil where there are no rollouts.
	Runs *Runs
	// Sources answer for components. A component without a source is not configured.
	Sources map[v1alpha1.EffectComponent]Source
	// Alerts recalls the alerts of before a write; nil where the installation has no source of alerts.
	Alerts *Alerts
	// Unready names, in words, the objects that need the object of a Baseline and are not ready.
	Unready func(ctx context.Context, namespace, baseline string) ([]string, error)
	Metrics *Metrics
	Time    Time
	Log     logr.Logger
	// MaxConcurrent is how many assessments are looked at at once.
	MaxConcurrent int

	heard heard
}

// subject is one assessment in one look.
type subject struct {
	// assessment as it is stored, and next as it is to be.
	assessment, next *v1alpha1.EffectivenessAssessment
	sight            Sight
	now              time.Time
	timeUnknown      bool
}

func (s *subject) timeNow() *metav1.Time { return &metav1.Time{Time: s.now} }

// Reconcile looks at one assessment. An assessment that has ended causes no read and no write.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	a := &v1alpha1.EffectivenessAssessment{}
	if err := r.Client.Get(ctx, request.NamespacedName, a); err != nil {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if effect.Phase(a.Status.Phase).Ended() || a.DeletionTimestamp != nil {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	r.Metrics.begin(a)
	s := &subject{assessment: a, next: a.DeepCopy()}
	r.heard.recall(request.NamespacedName, &s.next.Status)
	until := r.carry(ctx, s)
	switch err := r.store(ctx, s); {
	case apierrors.IsConflict(err): // the cache was behind
		return reconcile.Result{RequeueAfter: conflictAgain}, nil
	case apierrors.IsNotFound(err): // it went, and has no end to tell
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	r.tell(s)
	if effect.Phase(s.next.Status.Phase).Ended() {
		r.heard.forget(request.NamespacedName)
		r.Metrics.end(s)
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: s.again(until)}, nil
}

// forget an assessment that has ended, or that is gone.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.Metrics.forget(key)
	r.heard.forget(key)
}

// carry decides what follows, and returns when to look again.
func (r *Reconciler) carry(ctx context.Context, s *subject) time.Time {
	looker := r.lookerOf(s.assessment)
	if why := s.refusal(looker); why != "" {
		r.readTime(s)
		s.fail(why)
		return time.Time{}
	}
	if s.assessment.Spec.Execution == v1alpha1.ExecutionDone {
		s.sight = looker.look(ctx, s.assessment)
	}
	r.readTime(s)
	r.recallAlerts(ctx, s)
	d := s.decide()
	if len(d.Ask) > 0 {
		r.ask(ctx, s, d.Ask)
		d = s.decide()
	}
	s.put(&d)
	if s.next.Status.Phase == v1alpha1.AssessmentCompleted && s.sight.Read {
		r.lookBeside(ctx, s)
	}
	return d.Until
}

// readTime reads the API server's time, which the answer to the look may have told.
func (r *Reconciler) readTime(s *subject) {
	s.now, s.timeUnknown = r.Time.Now(), r.Time.Skew() == window.SkewUnknown
}

func (s *subject) decide() effect.Decision {
	return effect.Next(effect.ReadStored(s.next), effect.Facts{Now: s.now, TimeUnknown: s.timeUnknown, Live: s.sight.Live})
}

// looker looks at what was written. What the steps of plans write has one, and so has what the runs of releases
// leave.
type looker interface {
	look(ctx context.Context, a *v1alpha1.EffectivenessAssessment) Sight
}

// lookerOf returns the looker of an assessment; nil if there is none.
func (r *Reconciler) lookerOf(a *v1alpha1.EffectivenessAssessment) looker {
	switch of := &a.Spec.Subject; {
	case of.Plan != nil:
		return r.Targets
	case of.Release != nil && r.Runs != nil:
		return r.Runs
	}
	return nil
}

// refusal says why the spec cannot be carried out; empty if it can.
func (s *subject) refusal(by looker) string {
	switch spec := &s.assessment.Spec; {
	case by == nil && spec.Subject.Release != nil:
		return "this installation has no rollouts"
	case by == nil:
		return "this version assesses the steps of plans and the runs of releases alone"
	case spec.Execution != v1alpha1.ExecutionDone && spec.Execution != v1alpha1.ExecutionNone:
		return fmt.Sprintf("this version does not know the execution %q", spec.Execution)
	}
	return ""
}

// again is when to look at an assessment that has not ended.
func (s *subject) again(until time.Time) time.Duration {
	if until.IsZero() || !s.sight.Read && s.now.Add(unknownAgain).Before(until) {
		return unknownAgain
	}
	return max(until.Sub(s.now), atLeast)
}

// store writes what is news, in one patch. The patch is bound to the version that was read, so what was
// decided from an old version of the cache is not stored. Answers that are no news are remembered.
func (r *Reconciler) store(ctx context.Context, s *subject) error {
	if !isNews(&s.assessment.Status, &s.next.Status) {
		r.heard.remember(client.ObjectKeyFromObject(s.next), &s.next.Status)
		s.next.Status = s.assessment.Status // there is no news
		return nil
	}
	stored := s.next.DeepCopy()
	err := r.Client.Status().Patch(ctx, stored, client.MergeFromWithOptions(s.assessment, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
	if err != nil {
		return fmt.Errorf("storing the status of assessment %s/%s: %w", s.next.Namespace, s.next.Name, err)
	}
	return nil
}
