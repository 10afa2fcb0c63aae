// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

type ledgerQuery struct {
	Page
	InNamespace
}

func listLedgers(ctx context.Context, s *server, q *ledgerQuery) (*listed[wire.Ledger], error) {
	return list(ctx, s, &q.Page, &ledgers, q.Namespace, nil, all, without(wire.LedgerOf))
}

func getLedger(ctx context.Context, s *server, in *ByID) (*got[wire.Ledger], error) {
	return show(ctx, s, in, &ledgers, wire.LedgerOf)
}

type haltRequest struct {
	Path
	Body wire.HaltRequest
}

// haltLedger stops all that a ledger grants. A halt that stands keeps its user and its reason.
func haltLedger(ctx context.Context, s *server, in *haltRequest) (*written[wire.Ledger], error) {
	user, err := s.whoami(ctx)
	if err != nil {
		return nil, err
	}
	return setHalt(ctx, s, in.ID, &v1alpha1.LedgerHalt{RequestedBy: user.Username, Reason: in.Body.Reason})
}

// unhaltLedger takes a halt back.
func unhaltLedger(ctx context.Context, s *server, in *struct{ Path }) (*written[wire.Ledger], error) {
	if _, err := s.whoami(ctx); err != nil {
		return nil, err
	}
	return setHalt(ctx, s, in.ID, nil)
}

func setHalt(ctx context.Context, s *server, id string, halt *v1alpha1.LedgerHalt) (*written[wire.Ledger], error) {
	l, err := ledgers.one(ctx, s.cluster, id)
	if err != nil {
		return nil, err
	}
	if !actions.IsHaltAsWanted(l, halt != nil) {
		if err := actions.RequestHalt(ctx, s.cluster, l, halt, false); err != nil {
			return nil, &requestError{verb: "patch", kind: ledgers.kind, namespace: l.Namespace, err: err, locate: wire.LocateVerb}
		}
	}
	return tagged(http.StatusOK, wire.LedgerOf(l))
}
