// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

type acceptance struct {
	Path
	Waiting
	Body wire.AcceptRequest
}

func acceptBaseline(ctx context.Context, s *server, in *acceptance) (*written[wire.Baseline], error) {
	user, err := s.whoami(ctx)
	if err != nil {
		return nil, err
	}
	b, err := baselines.one(ctx, s.cluster, in.ID)
	if err != nil {
		return nil, err
	}
	if a := b.Spec.Authorized; a != nil && a.Hash == in.Body.Hash && a.Origin != v1alpha1.OriginImported && b.Status.Observed.Hash == a.Hash {
		return tagged(http.StatusOK, wire.BaselineOf(b)) // it is authorized already
	}
	candidates, refused := actions.PlanAccept([]v1alpha1.Baseline{*b}, true, actions.AcceptFilter{}, s.cluster.Now())
	if len(candidates) == 0 {
		return nil, wire.NewProblem(wire.Refused, refused[0].Reason.Words())
	}
	shown := &candidates[0]
	if shown.Hash != in.Body.Hash {
		return nil, &actions.StateChangedError{Hash: shown.Hash}
	}
	request := v1alpha1.AcceptRequest{RequestedBy: user.Username, RequestedByGroups: actions.NameGroups(user.Groups), Reason: in.Body.Reason}
	sent, err := actions.RequestAccept(ctx, s.cluster, shown, request, false)
	if err != nil {
		return nil, ofBaseline(b, err)
	}
	status, b, err := settle(ctx, s, &in.Waiting, sent.Baseline, func(ctx context.Context) (outcome[*v1alpha1.Baseline], error) {
		became, err := actions.AwaitAccept(ctx, s.cluster, sent)
		return outcome[*v1alpha1.Baseline]{became.Progress, became.Words(), latest(ctx, s, sent.Baseline)}, err
	})
	if err != nil {
		return nil, err
	}
	return tagged(status, wire.BaselineOf(b))
}

// latest reads a Baseline anew. One that is gone, as an accepted deletion ends, stays as it was.
func latest(ctx context.Context, s *server, b *v1alpha1.Baseline) *v1alpha1.Baseline {
	if now, err := readNamed(ctx, s, &baselines, b); err == nil {
		return now
	}
	return b
}

type checkRequest struct {
	Path
	Waiting
}

func checkBaseline(ctx context.Context, s *server, in *checkRequest) (*written[wire.Baseline], error) {
	b, err := baselines.one(ctx, s.cluster, in.ID)
	if err != nil {
		return nil, err
	}
	if !actions.IsCheckable(b) {
		return nil, wire.NewProblem(wire.Refused, "there is no object to check: it is retired, or no guard selects it any more")
	}
	value := actions.NewCheckValue(s.cluster.Now())
	if err := actions.RequestCheck(ctx, s.cluster, b, value); err != nil {
		return nil, ofBaseline(b, err)
	}
	status, b, err := settle(ctx, s, &in.Waiting, b, func(ctx context.Context) (outcome[*v1alpha1.Baseline], error) {
		progress, checked, err := actions.AwaitCheck(ctx, s.cluster, b, value)
		return outcome[*v1alpha1.Baseline]{progress, "its Baseline was removed meanwhile", checked}, err
	})
	if err != nil {
		return nil, err
	}
	return tagged(status, wire.BaselineOf(b))
}

type liftRequest struct {
	Path
	Waiting
	Body wire.LiftRequest
}

// liftBaseline ends the quarantine that the caller has seen.
func liftBaseline(ctx context.Context, s *server, in *liftRequest) (*written[wire.Baseline], error) {
	user, err := s.whoami(ctx)
	if err != nil {
		return nil, err
	}
	b, err := baselines.one(ctx, s.cluster, in.ID)
	if err != nil {
		return nil, err
	}
	switch q := b.Status.Quarantine; {
	case q == nil:
		return nil, wire.NewProblem(wire.Refused, "the object is not in quarantine")
	case q.Token != in.Body.Token:
		return nil, &actions.QuarantineChangedError{}
	}
	request := v1alpha1.LiftRequest{RequestedBy: user.Username, RequestedByGroups: actions.NameGroups(user.Groups), Reason: in.Body.Reason}
	sent, err := actions.RequestLift(ctx, s.cluster, b, request, false)
	if err != nil {
		return nil, ofBaseline(b, err)
	}
	status, b, err := settle(ctx, s, &in.Waiting, sent.Baseline, func(ctx context.Context) (outcome[*v1alpha1.Baseline], error) {
		became, err := actions.AwaitLift(ctx, s.cluster, sent)
		return outcome[*v1alpha1.Baseline]{became.Progress, became.Message, latest(ctx, s, sent.Baseline)}, err
	})
	if err != nil {
		return nil, err
	}
	return tagged(status, wire.BaselineOf(b))
}

func ofBaseline(b *v1alpha1.Baseline, err error) error {
	return &requestError{verb: "patch", kind: baselines.kind, namespace: b.Namespace, err: err, locate: wire.LocateVerb}
}
