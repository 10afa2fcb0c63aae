// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// unrecorded begins the reason for which a decision is not stored.
const unrecorded = "the decision cannot be recorded: "

// explainUnrecorded says in the status why what was decided is not stored: the
// record of it comes first. Nothing else of the status changes.
func (r *run) explainUnrecorded(ctx context.Context, why error) error {
	if strings.HasPrefix(r.plan.Status.DeferralReason, unrecorded) {
		return nil
	}
	return r.explain(ctx, unrecorded+why.Error())
}

// waiting begins the reason for which a plan goes on no further; explained is when
// somebody will want to know it.
const (
	waiting   = "waiting: "
	explained = time.Minute
)

// explainWaiting says in the status what a step waits for that has written, was about
// to, has a standby, or has no record, and has not come any further for a while. A plan whose step has no
// record asks for nothing else, so what the plan waited for before is over.
func (r *run) explainWaiting(ctx context.Context, why string) error {
	status, since := &r.plan.Status, r.Time.Now().Add(-explained)
	if why == "" || strings.HasPrefix(status.DeferralReason, waiting) || strings.HasPrefix(status.DeferralReason, unrecorded) {
		return nil
	}
	stuck := standsStill
	if status.DeferralReason != "" || status.Phase != v1alpha1.PlanRunning && status.Phase != v1alpha1.PlanSealing {
		stuck = lacksRecord
	}
	if !slices.ContainsFunc(status.Steps, func(s v1alpha1.PlanStep) bool { return stuck(&s, since) }) {
		return nil
	}
	return r.explain(ctx, waiting+why)
}

// standsStill says that a step, or its standby, has not come any further since a time.
func standsStill(step *v1alpha1.PlanStep, since time.Time) bool {
	intended := step.State == v1alpha1.StepIntent && step.Intent != nil && step.Intent.StorageTime.Time.Before(since)
	applied := step.State == v1alpha1.StepApplied && step.Result != nil && step.Result.RecordTime.Time.Before(since)
	standby := step.Standby != nil && step.Standby.Phase != v1alpha1.StandbyRemoved && step.Standby.PhaseTime.Time.Before(since)
	return intended || applied || standby || lacksRecord(step, since)
}

// lacksRecord says that a step ended before a time, and has no record.
func lacksRecord(step *v1alpha1.PlanStep, since time.Time) bool {
	return step.CompletionTime != nil && step.Evidence == nil && step.CompletionTime.Time.Before(since)
}

// explain stores a reason, and names no record that the stored status does not name. A plan that
// another executor holds keeps its status: each status names the executor that wrote it.
func (r *run) explain(ctx context.Context, why string) error {
	next := r.stored().DeepCopy()
	if next.Holder != "" && next.Holder != r.Holder {
		return nil
	}
	next.DeferralReason = diff.TruncateText(why, protocol.MaxMessage)
	_, err := r.put(ctx, next)
	return err
}
