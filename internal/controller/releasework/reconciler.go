// SPDX-License-Identifier: Apache-2.0

package releasework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
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
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

const (
	// maxActions bounds one run, so that a mistake cannot become a storm of requests.
	maxActions = 20
	// soon is when a work is looked at again that waits for an answer or for another work, and
	// later when it waits for a right, or the trust of a guard, that a person has to give.
	soon  = 2 * time.Second
	later = 30 * time.Second
	// maxNote is the API server's limit of an Event's note, in bytes.
	maxNote = 1024
)

// Reconciler carries ReleaseWorks out. All fields but Metrics are needed.
type Reconciler struct {
	// Live must read live: no cache.
	Live client.Client
	// Targets sends and reads Deployments and autoscalers, byte for byte.
	Targets exec.Targets
	// Guards reads what the guards say.
	Guards exec.Guards
	// Recorder writes Kubernetes Events.
	Recorder events.EventRecorder
	// Time is the API server's time.
	Time exec.Time
	// Namespace is Plumbline's own, where the ledgers are.
	Namespace string
	// Records tells what is recorded of works.
	Records Records
	// Metrics count the works that end; may be nil.
	Metrics *Metrics
	Log     logr.Logger
}

// Records tells what is recorded. No answer waits for the store of the records.
type Records interface {
	// Recorded says whether the intent of a work is recorded, and why records of its release cannot be stored now.
	Recorded(w *v1alpha1.ReleaseWork) (recorded bool, problem string)
	// HasEnd says whether the end of a work is recorded.
	HasEnd(w *v1alpha1.ReleaseWork) bool
	// Woken tells of works whose intent was recorded.
	Woken() <-chan event.TypedGenericEvent[*v1alpha1.ReleaseWork]
}

// Register adds the controller to a manager, with one worker.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("releasework").
		For(&v1alpha1.ReleaseWork{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}, unfinished())).
		WatchesRawSource(source.TypedChannel(r.Records.Woken(), &handler.TypedEnqueueRequestForObject[*v1alpha1.ReleaseWork]{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, NewQueue: fairqueue.ForRequests}).Complete(r)
	if err != nil {
		return fmt.Errorf("registering the controller of ReleaseWorks: %w", err)
	}
	return nil
}

// unfinished are the works that have not ended, so that a start looks at no work of the past.
func unfinished() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		w, is := object.(*v1alpha1.ReleaseWork)
		return is && !work.Final(w.Status.Phase)
	})
}

// answers are those that the API server gave to this run.
type answers struct{ tried, wrote *work.Answer }

// Reconcile carries one work as far as it goes now.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var known answers
	for range maxActions {
		facts, err := r.read(ctx, request.NamespacedName)
		if err != nil || facts == nil {
			return reconcile.Result{}, err
		}
		facts.Tried, facts.Wrote = known.tried, known.wrote
		action := work.Next(facts)
		switch action.Kind {
		case work.Done:
			return reconcile.Result{}, nil
		case work.Wait:
			return r.wait(ctx, facts, &action.Status)
		case work.End:
			return reconcile.Result{}, r.end(ctx, facts, &action.Status)
		case work.Try, work.Intend, work.Write, work.Fence, work.Look:
			err = r.act(ctx, facts, &action, &known)
		}
		if err != nil || ctx.Err() != nil { // without the lease, nothing more is sent
			return reconcile.Result{}, errors.Join(err, ctx.Err())
		}
	}
	return reconcile.Result{RequeueAfter: soon}, nil
}

// act carries an action out that another one follows.
func (r *Reconciler) act(ctx context.Context, facts *work.Facts, action *work.Action, known *answers) error {
	switch action.Kind {
	case work.Try:
		known.tried = r.send(ctx, action, true)
	case work.Intend:
		return r.store(ctx, facts.Work, &action.Status)
	case work.Write:
		known.wrote = r.send(ctx, action, false)
	case work.Fence:
		if fence := r.send(ctx, action, false); fence.Result == work.Refused || fence.Result == work.Lost {
			return fmt.Errorf("fencing %s %s/%s: %w: %s", action.Body.GetKind(), facts.Work.Namespace, action.Body.GetName(), errUnfenced, fence.Message)
		}
	case work.Look, work.Wait, work.End, work.Done:
	}
	return nil
}

// wait stores what a work waits for, and says when it is looked at again.
func (r *Reconciler) wait(ctx context.Context, facts *work.Facts, status *v1alpha1.ReleaseWorkStatus) (reconcile.Result, error) {
	if err := r.store(ctx, facts.Work, status); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: after(status.Reason)}, nil
}

// errUnfenced says that the target has the version of the intent still, so the work cannot end.
var errUnfenced = errors.New("the API server did not store the fence")

// after says when a work that waits is looked at again.
func after(reason v1alpha1.ReleaseWorkReason) time.Duration {
	if reason == v1alpha1.WorkNotAllowed || reason == v1alpha1.WorkRequesterNotTrusted {
		return later
	}
	return soon
}

// store stores a status that differs. The update is bound to uid and resourceVersion, so a conflict
// is an error, after which all is read anew.
func (r *Reconciler) store(ctx context.Context, w *v1alpha1.ReleaseWork, status *v1alpha1.ReleaseWorkStatus) error {
	if equality.Semantic.DeepEqual(w.Status, *status) {
		return nil
	}
	next := w.DeepCopy()
	next.Status = *status
	if err := r.Live.Status().Update(ctx, next, client.FieldOwner(exec.FieldManager)); err != nil {
		return fmt.Errorf("storing the status of ReleaseWork %s/%s: %w", w.Namespace, w.Name, err)
	}
	return nil
}

// end stores the end of a work, and tells it once it is stored.
func (r *Reconciler) end(ctx context.Context, facts *work.Facts, status *v1alpha1.ReleaseWorkStatus) error {
	w := facts.Work
	if err := r.store(ctx, w, status); err != nil {
		return err
	}
	kind := corev1.EventTypeNormal
	if status.Phase != v1alpha1.WorkSucceeded {
		kind = corev1.EventTypeWarning
	}
	note := fmt.Sprintf("%s of run %d: %s", w.Spec.Verb, w.Spec.Run, status.Phase)
	if status.Message != "" {
		note += ": " + status.Message
	}
	var related client.Object
	if facts.Release != nil {
		related = facts.Release
	}
	r.tell(w, related, kind, "Work"+string(status.Phase), note)
	r.Log.Info("release.work."+phaseWords[status.Phase], r.wordsOf(facts, status)...)
	r.Metrics.count(status)
	if err := r.sweep(ctx, facts); err != nil { // the end of the next work tries again
		r.Log.Error(err, "deleting ReleaseWorks that are no longer needed", "namespace", w.Namespace, "release", w.Spec.ReleaseName)
	}
	return nil
}

func (r *Reconciler) tell(w *v1alpha1.ReleaseWork, related client.Object, kind, reason, note string) {
	note = diff.TruncateText(note, maxNote)
	if related == nil {
		r.Recorder.Eventf(w, nil, kind, reason, "CarryOut", "%s", note)
		return
	}
	r.Recorder.Eventf(w, related, kind, reason, "CarryOut", "%s", note)
	r.Recorder.Eventf(related, w, kind, reason, "CarryOut", "%s", note)
}

// phaseWords are the ends of works as the log spells them.
var phaseWords = map[v1alpha1.ReleaseWorkPhase]string{
	v1alpha1.WorkSucceeded: "succeeded", v1alpha1.WorkRefused: "refused", v1alpha1.WorkFailed: "failed",
}

// wordsOf returns the fields of a log line.
func (r *Reconciler) wordsOf(facts *work.Facts, status *v1alpha1.ReleaseWorkStatus) []any {
	w := facts.Work
	words := []any{
		"namespace", w.Namespace, "work", w.Name, "work_uid", string(w.UID), "release", w.Spec.ReleaseName, "release_uid", w.Spec.ReleaseUID,
		"run", w.Spec.Run, "verb", string(w.Spec.Verb), "reason", string(status.Reason), "message", status.Message,
		"baseline_hash", w.Spec.ExpectedHash, "template_hash", status.TemplateHash,
	}
	if w.Spec.Replicas != nil {
		words = append(words, "replicas", *w.Spec.Replicas)
	}
	if facts.Release != nil && facts.Release.Spec.Rollout != nil {
		words = append(words, "requested_by", facts.Release.Spec.Rollout.RequestedBy)
	}
	if status.TargetRef != nil {
		words = append(words, "target", status.TargetRef.Name, "target_uid", status.TargetRef.UID)
	}
	return words
}

// readWork reads a work; nil when it is gone.
func (r *Reconciler) readWork(ctx context.Context, key types.NamespacedName) (*v1alpha1.ReleaseWork, error) {
	w := &v1alpha1.ReleaseWork{}
	err := r.Live.Get(ctx, key, w)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absent is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("reading ReleaseWork %s: %w", key, err)
	}
	return w, nil
}
