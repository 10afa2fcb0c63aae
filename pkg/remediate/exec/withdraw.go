// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// maxWithdraws is the schema's bound.
const maxWithdraws = 16

// decision is what a status says of the decision that it stores, whose record is at a head.
// Records of other decisions since the last one that was stored were never stored: their
// statuses are bound to a version that is no more, once this one is stored. An event that
// is told already keeps the last decision before, which is later.
func (r *run) decision(before *v1alpha1.PlanDecision, at evidence.Head) *v1alpha1.PlanDecision {
	if before == nil && r.plan.Status.Phase != "" {
		return &v1alpha1.PlanDecision{StepEvidence: named(at)} // begun by an earlier release, which named none
	}
	next := &v1alpha1.PlanDecision{StepEvidence: named(at)}
	var since int64
	if before != nil {
		since = before.Sequence
		if at.Sequence < since {
			next.StepEvidence = before.StepEvidence
		}
	}
	for _, other := range r.Evidence.decisions(&r.plan.Spec.Plan, string(r.plan.UID), since) {
		if other != at && len(next.Withdraws) < maxWithdraws {
			next.Withdraws = append(next.Withdraws, named(other))
		}
	}
	return next
}

func named(at evidence.Head) v1alpha1.StepEvidence {
	return v1alpha1.StepEvidence{Sequence: at.Sequence, Digest: at.Digest}
}

// decisions are the records of decisions about a plan after a sequence, in their order, as
// far as this process knows them.
func (r *Recorder) decisions(plan *v1alpha1.PlannedRemediation, uid string, since int64) []evidence.Head {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.chains[plan.Policy.UID]
	if c == nil {
		return nil
	}
	var found []evidence.Head
	for at, of := range c.decided {
		if of == uid && at.Sequence > since {
			found = append(found, at)
		}
	}
	slices.SortFunc(found, func(a, b evidence.Head) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return found
}

// withdraw leaves a record for each decision that was recorded and never stored. The status
// names them until the next decision, so that the next executor withdraws what this one
// could not. After the end of a plan no further decision is stored.
func (r *run) withdraw(ctx context.Context) error {
	stored := r.plan.Status.Decision
	if stored == nil {
		return nil
	}
	for _, record := range stored.Withdraws {
		if err := r.withdrawOne(ctx, evidence.Head{Sequence: record.Sequence, Digest: record.Digest}); err != nil {
			return err
		}
	}
	if !protocol.Final(r.plan.Status.Phase) {
		return nil
	}
	for _, at := range r.Evidence.decisions(&r.plan.Spec.Plan, string(r.plan.UID), stored.Sequence) {
		if err := r.withdrawOne(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) withdrawOne(ctx context.Context, at evidence.Head) error {
	record := r.common(evidence.KindDecisionWithdrawn, r.Time.Now())
	record.Subject, record.Approver, record.Withdraws = r.subject(), "", &at
	record.Occurrence = int32(min(at.Sequence, math.MaxInt32)) //nolint:gosec // bounded
	if _, err := r.tell(ctx, record); err != nil {
		return fmt.Errorf("withdrawing record %d: %w", at.Sequence, err)
	}
	return nil
}
