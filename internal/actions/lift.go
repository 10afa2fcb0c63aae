// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// QuarantineChangedError says that the quarantine that was shown is not in force any more.
type QuarantineChangedError struct{}

func (*QuarantineChangedError) Error() string {
	return "its quarantine changed since it was shown: look at it again"
}

// LiftSent is a request to lift a quarantine that was sent.
type LiftSent struct {
	// Baseline is the one that the request is stored in.
	Baseline *v1alpha1.Baseline
	Token    string
}

// RequestLift sets spec.lift, if the quarantine that was shown is still in force; otherwise the
// error is a QuarantineChangedError. The request's token is that of shown.
func RequestLift(ctx context.Context, c client.Client, shown *v1alpha1.Baseline, request v1alpha1.LiftRequest, dryRun bool) (LiftSent, error) {
	request.Token = shown.Status.Quarantine.Token
	current := shown.DeepCopy()
	err := Submit(ctx, c, "its Baseline", current, func(b *v1alpha1.Baseline) (map[string]any, error) {
		if !specguard.Lifts(&request, b.Status.Quarantine) {
			return nil, &QuarantineChangedError{}
		}
		return liftPatch(&request), nil
	}, patchOptions(dryRun)...)
	return LiftSent{Baseline: current, Token: request.Token}, err
}

func liftPatch(request *v1alpha1.LiftRequest) map[string]any {
	lift := map[string]any{"token": request.Token, "requestedBy": request.RequestedBy, "reason": orNull(request.Reason), "requestedByGroups": nil}
	if len(request.RequestedByGroups) > 0 {
		lift["requestedByGroups"] = request.RequestedByGroups
	}
	return map[string]any{"spec": map[string]any{"lift": lift}}
}

// LiftOutcome tells what became of a request to lift a quarantine.
type LiftOutcome struct {
	Progress
	// Message is the guard's, where the request was refused.
	Message string
}

// JudgeLift judges whether the quarantine with a token has ended: the assessor clears a request
// that it refuses. deleted says that the Baseline is gone.
func JudgeLift(b *v1alpha1.Baseline, token string, deleted bool) LiftOutcome {
	q := b.Status.Quarantine
	switch {
	case deleted, q == nil, q.Token != token:
		return LiftOutcome{Progress: Taken}
	case b.Spec.Lift != nil && b.Spec.Lift.Token == token, b.Status.ObservedGeneration < b.Generation:
		return LiftOutcome{}
	}
	outcome := LiftOutcome{Progress: Refused, Message: "another request took the place of this one"}
	if meta.IsStatusConditionFalse(b.Status.Conditions, v1alpha1.ConditionAcceptanceAllowed) {
		outcome.Message = meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionAcceptanceAllowed).Message
	}
	return outcome
}

// AwaitLift waits until a quarantine has ended, or the request is refused. It is pending still
// when the context ends first.
func AwaitLift(ctx context.Context, c client.WithWatch, sent LiftSent) (outcome LiftOutcome, err error) {
	err = Await(ctx, c, sent.Baseline, &v1alpha1.BaselineList{}, func(current *v1alpha1.Baseline, deleted bool) bool {
		outcome = JudgeLift(current, sent.Token, deleted)
		return outcome.Progress != Pending
	})
	return outcome, err
}
