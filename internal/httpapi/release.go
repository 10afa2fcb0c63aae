// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

type releaseQuery struct {
	Page
	InNamespace
	InEnvironment
	Status wire.Word[v1alpha1.RunState] `query:"status"`
}

func listReleases(ctx context.Context, s *server, q *releaseQuery) (*listed[wire.Release], error) {
	return list(ctx, s, &q.Page, &releases, q.Namespace, &q.InEnvironment, func(r *v1alpha1.ABRelease, uids *wire.Uids) bool {
		return q.keeps(uids.EnvironmentOf[r.Namespace], uids) && (q.Status == "" || q.Status == wire.ReleaseStatusOf(r))
	}, wire.ReleaseOf)
}

func getRelease(ctx context.Context, s *server, in *ByID) (*got[wire.Release], error) {
	r, uids, err := find(ctx, s, &releases, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(in, "", wire.ReleaseOf(r, uids))
}

func getTraffic(ctx context.Context, s *server, in *ByID) (*got[wire.Traffic], error) {
	return show(ctx, s, in, &releases, wire.TrafficOf)
}

func getHealth(ctx context.Context, s *server, in *ByID) (*got[wire.Health], error) {
	return show(ctx, s, in, &releases, wire.HealthOf)
}

func listStrategies(ctx context.Context, s *server, q *struct{ Page }) (*listed[wire.Strategy], error) {
	return list(ctx, s, &q.Page, &strategies, "", nil, all, without(wire.StrategyOf))
}

func getStrategy(ctx context.Context, s *server, in *ByID) (*got[wire.Strategy], error) {
	return show(ctx, s, in, &strategies, wire.StrategyOf)
}
