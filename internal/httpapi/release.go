// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
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

// hourQuery names a release, of which the last hour may be asked for.
type hourQuery struct {
	ByID
	History bool `query:"history" doc:"Also the last hour, from the replica of the discovery server that leads. The caller needs the right to create pods/portforward in its namespace."`
}

func getTraffic(ctx context.Context, s *server, in *hourQuery) (*got[wire.Traffic], error) {
	r, hour, err := readHour(ctx, s, in)
	if err != nil {
		return nil, err
	}
	traffic := wire.TrafficOf(r)
	if hour != nil {
		traffic.LastHour = wire.TrafficHourOf(&r.Spec, hour)
	}
	return answer(&in.ByID, "", traffic)
}

func getHealth(ctx context.Context, s *server, in *hourQuery) (*got[wire.Health], error) {
	r, hour, err := readHour(ctx, s, in)
	if err != nil {
		return nil, err
	}
	health := wire.HealthOf(r)
	if hour != nil {
		health.LastHour = wire.HealthHourOf(&r.Spec, hour)
	}
	return answer(&in.ByID, "", health)
}

// readHour reads a release, and its last hour if the query asks for it.
func readHour(ctx context.Context, s *server, in *hourQuery) (*v1alpha1.ABRelease, *history.Series, error) {
	r, err := releases.one(ctx, s.cluster, in.ID)
	if err != nil || !in.History {
		return r, nil, err
	}
	hour, err := ReadHour(ctx, s.cluster, r)
	return r, hour, err
}

func listStrategies(ctx context.Context, s *server, q *struct{ Page }) (*listed[wire.Strategy], error) {
	return list(ctx, s, &q.Page, &strategies, "", nil, all, without(wire.StrategyOf))
}

func getStrategy(ctx context.Context, s *server, in *ByID) (*got[wire.Strategy], error) {
	return show(ctx, s, in, &strategies, wire.StrategyOf)
}
