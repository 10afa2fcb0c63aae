// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/stamp"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// concerns tells whether an observation is about an object that has a Baseline, or gets one. An object that was never
// there gets none, nor does an object that a built-in controller made: its owner is judged.
func (r *Reconciler) concerns(ctx context.Context, s *subject, d *decision, look observed) (bool, error) {
	switch {
	case d.state.Drift != "" || s.baseline != nil:
		return true, nil
	case look.object == nil:
		return false, nil
	case specguard.IsRoot(specguard.OperationCreate, canon.GVK(s.key.GroupVersionKind), nil, look.object.OwnerReferences):
		return true, nil
	}
	return r.namesForeignOwner(ctx, s, look.object)
}

// namesForeignOwner tells whether the policy proves that another user than a built-in controller wrote an object that
// names an owner of such a controller. Without that proof, the owner is believed: a controller's objects of a time
// without the policy are no drift.
func (r *Reconciler) namesForeignOwner(ctx context.Context, s *subject, object *kube.Object) (bool, error) {
	if r.Stamps == nil || specguard.IsBuiltInController(object.Writer()) || !r.stampedSinceCreation(s, object, r.Stamps.Last()) {
		return false, nil
	}
	// The policy may have gone a moment before the object was made.
	now, err := r.Stamps.Now(ctx)
	return err == nil && r.stampedSinceCreation(s, object, now), err
}

// stampedSinceCreation tells whether an object is younger than a policy, which then stamped each write of it.
func (r *Reconciler) stampedSinceCreation(s *subject, object *kube.Object, policy stamp.Incarnation) bool {
	stamps := r.Stamps.Stamps(policy, s.key.GroupVersionKind, stamp.Version{ResourceVersion: object.ResourceVersion})
	return stamps.Policy != "" && object.CreationTimestamp.After(stamps.Since)
}
