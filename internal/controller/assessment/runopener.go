// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// RunOpener begins the assessment of each run that was promoted or rolled back, and removes those of runs that the
// history of their release has no more.
type RunOpener struct {
	// Client reads releases and assessments from the cache, and creates and deletes assessments.
	Client client.Client
	Runs   *Runs
	Time   Time
}

// errUnseen says that the workload that serves could not be read.
var errUnseen = errors.New("the variation that serves the release could not be read")

// Reconcile begins what is missing of one release.
func (o *RunOpener) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	release := &v1alpha1.ABRelease{}
	if err := o.Client.Get(ctx, request.NamespacedName, release); err != nil || release.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	ends := runEnds(rollout.StateOf(&release.Status).History)
	failed := []error{o.removeOld(ctx, release, ends)}
	for i := range ends {
		failed = append(failed, o.begin(ctx, release, &ends[i]))
	}
	return reconcile.Result{}, errors.Join(failed...)
}

// begin creates the assessment of a run, unless there is one.
func (o *RunOpener) begin(ctx context.Context, release *v1alpha1.ABRelease, end *runEnd) error {
	key := types.NamespacedName{Namespace: release.Namespace, Name: effect.NameOfRun(release.Name, end.number)}
	err := o.Client.Get(ctx, key, &v1alpha1.EffectivenessAssessment{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	spec, known := specOfRun(release, end)
	if !known {
		return nil
	}
	if err := o.see(ctx, release, &spec); err != nil {
		return err
	}
	a := &v1alpha1.EffectivenessAssessment{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "ABRelease", Name: release.Name, UID: release.UID, Controller: new(true),
		}}},
		Spec: spec,
	}
	return createAssessment(ctx, o.Client, a)
}

// see notes which object serves. The object is read after the run has ended, so its hash is not taken from there.
// A workload that cannot be read until it counts as stabilized is never compared.
func (o *RunOpener) see(ctx context.Context, release *v1alpha1.ABRelease, spec *v1alpha1.EffectivenessAssessmentSpec) error {
	if spec.Execution != v1alpha1.ExecutionDone {
		return nil
	}
	s := o.Runs.see(ctx, release)
	switch {
	case s.Read:
		spec.Target.UID = s.UID
		if s.Hash != "" && s.Hash == spec.PostHash {
			spec.PostGeneration = s.Generation
		}
	case o.Time.Now().Before(effect.WindowsOf(&spec.Windows).Schedule(spec.WrittenTime.Time).Stabilized):
		return fmt.Errorf("beginning the assessment of run %d of release %s/%s: %w: %s", spec.Subject.Release.Run, release.Namespace, release.Name, errUnseen, s.Why)
	default:
		spec.PostHash = ""
	}
	return nil
}

// removeOld removes the assessments of runs whose end the history has no more, so that a release has no more of
// them than its history has lines.
func (o *RunOpener) removeOld(ctx context.Context, release *v1alpha1.ABRelease, ends []runEnd) error {
	var all v1alpha1.EffectivenessAssessmentList
	if err := o.Client.List(ctx, &all, client.InNamespace(release.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the assessments of release %s/%s: %w", release.Namespace, release.Name, err)
	}
	var failed []error
	for i := range all.Items {
		a := &all.Items[i]
		of := a.Spec.Subject.Release
		isOld := of != nil && of.UID == string(release.UID) && effect.Phase(a.Status.Phase).Ended() &&
			!slices.ContainsFunc(ends, func(e runEnd) bool { return e.number == of.Run })
		if !isOld {
			continue
		}
		if err := o.Client.Delete(ctx, a.DeepCopy(), client.Preconditions{UID: &a.UID}); client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("removing the assessment %s/%s: %w", a.Namespace, a.Name, err))
		}
	}
	return errors.Join(failed...)
}

// Register adds the controller to a manager.
func (o *RunOpener) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("run-assessment-opener").
		For(&v1alpha1.ABRelease{}, builder.WithPredicates(runsEnded())).
		WithOptions(controller.Options{RateLimiter: retries()}).Complete(o)
	if err != nil {
		return fmt.Errorf("registering the controller that begins assessments of runs: %w", err)
	}
	return nil
}

// runsEnded are releases of which another run has ended than before.
func runsEnded() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return lastEnd(e.Object) > 0 },
		UpdateFunc:  func(e event.UpdateEvent) bool { return lastEnd(e.ObjectOld) != lastEnd(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// lastEnd is the number of the last line of a history that ends a run; 0 without one.
func lastEnd(object client.Object) (number int64) {
	release, is := object.(*v1alpha1.ABRelease)
	if !is || release.Status.Rollout == nil {
		return 0
	}
	for i := range release.Status.Rollout.History {
		line := &release.Status.Rollout.History[i]
		if event := rollout.EventName(line.Event); event == rollout.RunPromoted || event == rollout.RunRolledBack {
			number = line.Number
		}
	}
	return number
}

// servesByAnother are releases of which another variation is the active one than before.
func servesByAnother() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isOne := e.ObjectOld.(*v1alpha1.ABRelease)
			after, isOther := e.ObjectNew.(*v1alpha1.ABRelease)
			return isOne && isOther && activeVariation(before) != activeVariation(after)
		},
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// ofRelease returns the assessments of the runs that a history tells. One that has ended is not looked at again.
func ofRelease(_ context.Context, object client.Object) []reconcile.Request {
	release, is := object.(*v1alpha1.ABRelease)
	if !is {
		return nil
	}
	var requests []reconcile.Request
	for _, end := range runEnds(rollout.StateOf(&release.Status).History) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: release.Namespace, Name: effect.NameOfRun(release.Name, end.number)}})
	}
	return requests
}
