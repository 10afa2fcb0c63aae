// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/revisions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// readClone reads the arms of a release one of whose variations is a clone. While the executor has something
// to do, and while a run is on, they are read live: no pod may tell of what changes.
func (r *Reconciler) readClone(ctx context.Context, s *subject, f *rollout.Facts, cloned *v1alpha1.Variation) {
	stable := string(s.release.Spec.Stable)
	at := slices.IndexFunc(s.decision.After.Split.Variations, func(v traffic.Variation) bool { return v.Name == stable })
	if r.Clones == nil || at < 0 || s.decision.After.Split.Variations[at].Workload == nil {
		return
	}
	selector, err := r.selector(ctx, s)
	if err != nil {
		r.unread(s, stable, err)
		return
	}
	name, isOn := string(cloned.Name), f.Before.IsOn()
	pair, err := r.Clones.ReadClone(ctx, &revisions.Visit{
		Release: s.release, Variation: cloned, Baseline: *s.decision.After.Split.Variations[at].Workload, Selector: selector,
		BaselineLabels: s.endpoints[stable].Revisions, CloneLabels: s.endpoints[name].Revisions, Live: isOn || f.Before.HasOpenWork(),
		Keeps: isOn && s.release.Spec.Rollout.Supersede == v1alpha1.SupersedeQueue,
	})
	if err != nil {
		r.unread(s, stable, err)
		return
	}
	f.Clone = &pair.Clone
	if pair.Problem != "" && s.invalid == nil {
		f.Plan, f.Problem = nil, pair.Problem
	}
	pair.Baseline.Ready = s.endpoints[stable].Ready
	f.Arms[stable], f.Arms[name] = pair.Baseline, canaryOf(&pair, s.endpoints[name].Ready)
	if pair.Kept != nil {
		f.Kept = &rollout.Kept{Clone: pair.Kept.Clone, Arm: canaryOf(pair.Kept, s.endpoints[name].Ready)}
	}
}

// canaryOf counts the ready endpoints of a clone that has its pod template: requests to pods of another template
// are none of the run's.
func canaryOf(pair *revisions.Pair, ready int) rollout.Arm {
	arm := pair.Canary
	if pair.Follows {
		arm.Ready = ready
	}
	return arm
}

// forgetClone drops the memory of a release that is gone.
func (r *Reconciler) forgetClone(release types.NamespacedName) {
	if r.Clones != nil {
		r.Clones.Forget(release)
	}
}

// selector of the Service; nil if it selects nothing.
func (r *Reconciler) selector(ctx context.Context, s *subject) (map[string]string, error) {
	service := &corev1.Service{}
	name := types.NamespacedName{Namespace: s.release.Namespace, Name: s.release.Spec.ServiceName}
	if err := r.Client.Get(ctx, name, service); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Service %s: %w", name, err)
	}
	return service.Spec.Selector, nil
}

// workAnswers are what the executor says of the works of a release.
func (r *Reconciler) workAnswers(ctx context.Context, s *subject, before *rollout.State) ([]rollout.WorkAnswer, error) {
	if r.Revisions == nil || before.Run == nil {
		return nil, nil
	}
	var works v1alpha1.ReleaseWorkList
	if err := r.Client.List(ctx, &works, client.InNamespace(s.release.Namespace)); err != nil {
		return nil, fmt.Errorf("listing ReleaseWorks of namespace %s: %w", s.release.Namespace, err)
	}
	return rollout.AnswersOf(s.release, works.Items), nil
}

// windUp has the minimum put back that a release holds which decides no more, and its fresh control scaled to 0: its
// rollout is gone from the spec, or the release is deleted while another one divides the Service.
func (r *Reconciler) windUp(ctx context.Context, s *subject) error {
	if s.release.Spec.Rollout != nil && !s.deleting() {
		return nil
	}
	before := rollout.StateOf(&s.release.Status)
	answers, err := r.workAnswers(ctx, s, &before)
	if err != nil {
		return err
	}
	facts := rollout.Facts{Before: before, Works: answers, Now: s.now}
	if s.decision.After != nil {
		facts.Standing = s.rolloutStanding()
	}
	s.rollout = rollout.WindUp(facts)
	return nil
}

// askExecutor creates the works that the executor does not have. The status that names them is stored before,
// so a process that ends in between leaves them to the next one.
func (r *Reconciler) askExecutor(ctx context.Context, s *subject) error {
	if s.rollout == nil {
		return nil
	}
	for i := range s.rollout.Works {
		work := rollout.ReleaseWorkOf(s.release, &s.rollout.Works[i])
		err := r.Client.Create(ctx, work)
		switch {
		case apierrors.IsAlreadyExists(err): // the cache is behind
		case err != nil:
			return fmt.Errorf("asking the executor for work %s/%s: %w", work.Namespace, work.Name, err)
		default:
			r.Log.Info("release.work.asked", "event", "release.work.asked", "namespace", work.Namespace, "release", s.release.Name, "work", work.Name, "verb", string(work.Spec.Verb))
		}
	}
	return nil
}

// findAsking finds the release that a work belongs to.
func findAsking(_ context.Context, o client.Object) []reconcile.Request {
	work, is := o.(*v1alpha1.ReleaseWork)
	if !is {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: work.Namespace, Name: work.Spec.ReleaseName}}}
}
