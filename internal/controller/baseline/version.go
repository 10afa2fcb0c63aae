// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errOtherVersion says that the Baseline of an object tells of another version of its
// kind.
var errOtherVersion = errors.New("the object has a baseline in another version")

// resolveVersion deals with a Baseline in another version than the one in which the
// object is judged now. Two Baselines of one object would contradict each other, so the
// Baseline moves.
func (r *Reconciler) resolveVersion(ctx context.Context, s *subject, err error) error {
	if !errors.Is(err, errOtherVersion) {
		return err
	}
	if _, goesOn := s.snapshot.Resources[KeyOf(s.baseline).GroupVersionKind]; goesOn {
		r.Objects.Settle(s.key, s.view.Pending)
		return nil
	}
	return r.moveVersion(ctx, s)
}

// moveVersion has the Baseline tell of the version in which the object is judged now.
// The authorized body is not converted, because a field that one version does not show
// may have drifted. So the body counts as lost until a person accepts the object.
func (r *Reconciler) moveVersion(ctx context.Context, s *subject) error {
	former := KeyOf(s.baseline)
	next := s.baseline.DeepCopy()
	next.Spec.Target, next.Spec.Accept = s.target(), nil
	if a := next.Spec.Authorized; a != nil {
		a.Revision = fmt.Sprintf("not-converted-from-%s", strings.ToLower(former.Version))
	}
	if err := r.Client.Update(ctx, next, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("moving the baseline of %s from %s: %w", s.key, former.GroupVersion(), err)
	}
	r.forget(former)
	r.memory.forget(s.key)
	return nil
}
