// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Orders have all replicas carry out the prepared rollback of a release, without the API server.
type Orders interface {
	Order(release types.UID, sequence uint64) error
	// Ordered tells whether this replica knows of the order.
	Ordered(release types.UID, sequence uint64) bool
}

// prepares tells whether each decision about a release prepares its rollback.
func (r *Reconciler) prepares(s *subject, state rollout.State) bool {
	return s.release.Spec.Rollout != nil && r.Revisions != nil && r.Orders != nil && state.IsOn()
}

// recall has a release begin with its prepared rollback, if that is ordered: the status may be older.
func (r *Reconciler) recall(s *subject) {
	before := s.facts.Before
	if r.Orders == nil || before == nil || before.Prepared == 0 || !r.Orders.Ordered(s.release.UID, before.Prepared) {
		return
	}
	s.ordered, s.facts.Before = true, before.Retreated()
}

// adopt does likewise when proxies have the sequence of the prepared rollback: a leader that is gone
// ordered it.
func (r *Reconciler) adopt(ctx context.Context, s *subject) error {
	before := s.facts.Before
	if before == nil || before.Prepared == 0 || s.facts.Ahead != before.Prepared || s.decision.After == nil {
		return nil
	}
	s.ordered, s.facts.Before, s.facts.Ahead = true, before.Retreated(), 0
	if s.facts.Terms != nil {
		terms := s.shiftTerms(*s.facts.Terms)
		s.facts.Terms = &terms
	}
	return r.decide(ctx, s)
}

// order has all replicas go back at once after a failure. The write of the status follows; the order
// arrives where the API server does not, and both say the same.
func (r *Reconciler) order(_ context.Context, s *subject) error {
	prepared := preparedOf(&s.release.Status)
	if r.Orders == nil || prepared == 0 || s.rollout == nil || s.decision.After == nil || s.decision.After.Split.Sequence != prepared {
		return nil
	}
	run := s.rollout.After.Run
	if run == nil || run.State != rollout.RolledBack || run.EndReason != rollout.EndFailed && run.EndReason != rollout.EndGateFailed {
		return nil
	}
	if err := r.Orders.Order(s.release.UID, prepared); err != nil { // the status says it as well
		r.Log.Info("the prepared rollback is not ordered", "release", s.release.Namespace+"/"+s.release.Name, "error", err.Error())
	}
	return nil
}

func preparedOf(status *v1alpha1.ABReleaseStatus) uint64 {
	if status.Effective == nil {
		return 0
	}
	return uint64(max(status.Effective.PreparedSequence, 0)) //nolint:gosec // it is not negative
}
