// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// deleting tells whether the release goes once nothing holds it.
func (s *subject) deleting() bool { return s.release.DeletionTimestamp != nil }

// findSelected returns the variation that the Service selects by itself.
func (r *Reconciler) findSelected(ctx context.Context, s *subject, f *rollout.Facts) (string, error) {
	selector, err := r.selector(ctx, s)
	if err != nil {
		return "", err
	}
	active := f.Before.Active
	if active == "" {
		active = f.Stable
	}
	return rollout.FindSelected(selector, active, f.Variations, f.Arms), nil
}

// deletionOf returns nil for a release that is not being deleted.
func (s *subject) deletionOf(f *rollout.Facts, selected string) *rollout.Deletion {
	if !s.deleting() {
		return nil
	}
	active := f.Before.Active
	return &rollout.Deletion{To: selected, Ready: s.endpoints[selected].Ready, Wants: s.endpoints[active].Ready}
}

// hold puts the finalizer on a release whose requests or replicas would have to return first, and on one with a
// minimum to put back. It precedes the write of
// the status, which tells proxies to send requests elsewhere.
func (r *Reconciler) hold(ctx context.Context, s *subject) error {
	if err := r.holdConnectors(ctx, s); err != nil {
		return err
	}
	if s.rollout == nil || s.deleting() || !s.rollout.After.NeedsReturn(s.selected) && !s.needsWork() {
		return nil
	}
	return r.changeFinalizer(ctx, s, controllerutil.AddFinalizer)
}

// letGo takes the finalizer off a release that holds no requests, replicas or minimum, and off one that cannot return them.
func (r *Reconciler) letGo(ctx context.Context, s *subject) error {
	connected := s.release.Spec.HasConnectors()
	if r.Revisions == nil && !connected || !controllerutil.ContainsFinalizer(s.release, v1alpha1.FinalizerReturnRequests) {
		return nil
	}
	holds, err := r.holds(ctx, s)
	if err != nil || holds || connected && !s.deleting() {
		return err
	}
	if connected && s.returned() {
		if err := s.router.Remove(ctx); err != nil {
			return fmt.Errorf("deleting release %s/%s: %w", s.release.Namespace, s.release.Name, err)
		}
	}
	return r.changeFinalizer(ctx, s, controllerutil.RemoveFinalizer)
}

// needsWork tells whether the executor owes a minimum or replicas of the release.
func (s *subject) needsWork() bool {
	return s.rollout != nil && (s.rollout.After.NeedsPutBack() || s.rollout.After.OwesGroups())
}

func (r *Reconciler) holds(ctx context.Context, s *subject) (bool, error) {
	switch needs := s.needsWork(); {
	case s.deleting() && s.release.Spec.HasConnectors() && s.release.Spec.Rollout == nil:
		if s.returned() {
			return false, nil
		}
	case !s.deleting() && s.release.Spec.Rollout == nil:
		return needs, nil // percentages of a person are what proxies have
	case !s.deleting():
		return s.rollout == nil || s.unknown || needs || s.rollout.After.NeedsReturn(s.selected), nil
	case s.rollout != nil && s.rollout.Returned:
		return false, nil
	case needs:
	case s.rollout == nil, s.serviceless(): // nothing is in force, or another release divides the Service
		return false, nil
	case s.standing() == release.Unrouted: // no proxy has the split
		return false, nil
	}
	return r.namespaceStays(ctx, s.release.Namespace)
}

// namespaceStays tells whether a namespace is not being deleted. It is true with an error.
func (r *Reconciler) namespaceStays(ctx context.Context, name string) (bool, error) {
	namespace := &corev1.Namespace{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		return true, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return namespace.DeletionTimestamp == nil, nil
}

// changeFinalizer writes the finalizer alone, and fails when the release has changed since it was read.
func (r *Reconciler) changeFinalizer(ctx context.Context, s *subject, change func(client.Object, string) bool) error {
	changed := s.release.DeepCopy()
	if !change(changed, v1alpha1.FinalizerReturnRequests) {
		return nil
	}
	if err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(s.release, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the finalizer of release %s/%s: %w", s.release.Namespace, s.release.Name, err)
	}
	s.release.Finalizers, s.release.ResourceVersion = changed.Finalizers, changed.ResourceVersion
	return nil
}
