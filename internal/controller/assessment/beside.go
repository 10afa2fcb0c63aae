// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"

	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// The bounds of status.sideEffects.
const (
	maxSideEffects = 16
	maxSideEffect  = 256
)

// lookBeside reports what is not ready beside a target that was written. It lowers no score, so a failure is logged
// alone.
func (r *Reconciler) lookBeside(ctx context.Context, s *subject) {
	found, err := r.Unready(ctx, s.next.Namespace, s.next.Spec.Target.BaselineName)
	if err != nil {
		r.Log.Error(err, "looking for side effects", "assessment", s.next.Namespace+"/"+s.next.Name)
		return
	}
	room := max(maxSideEffects-len(s.next.Status.SideEffects), 0) // alerts are there already
	for _, text := range found[:min(len(found), room)] {
		s.next.Status.SideEffects = append(s.next.Status.SideEffects, diff.TruncateText(diff.Printable(text), maxSideEffect))
	}
}
