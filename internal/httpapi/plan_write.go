// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

type planRequest struct {
	Path
	Waiting
	Body *wire.ReasonRequest
}

// askPlan makes the handler that asks something of a plan in the name of the caller.
func askPlan(verb v1alpha1.PlanVerb) func(context.Context, *server, *planRequest) (*written[wire.Plan], error) {
	return func(ctx context.Context, s *server, in *planRequest) (*written[wire.Plan], error) {
		user, err := s.whoami(ctx)
		if err != nil {
			return nil, err
		}
		p, uids, err := find(ctx, s, &plans, in.ID)
		if err != nil {
			return nil, err
		}
		if _, already := actions.FindPlanStanding(verb, p); already {
			return tagged(http.StatusOK, wire.PlanOf(p, uids))
		}
		control := v1alpha1.PlanControl{Verb: verb, RequestedBy: user.Username, Reason: bodyOf(in.Body).Reason}
		if err := actions.RequestPlanVerb(ctx, s.cluster, p, control, false); err != nil {
			return nil, &requestError{verb: "patch", kind: plans.kind, namespace: p.Namespace, err: err, locate: wire.LocateVerb}
		}
		status, p, err := settle(ctx, s, &in.Waiting, p, func(ctx context.Context) (outcome[*v1alpha1.RemediationPlan], error) {
			became, last, err := actions.AwaitPlanVerb(ctx, s.cluster, verb, p)
			return outcome[*v1alpha1.RemediationPlan]{became.Progress, became.Refusal(), last}, err
		})
		if err != nil {
			return nil, err
		}
		return tagged(status, wire.PlanOf(p, uids))
	}
}
