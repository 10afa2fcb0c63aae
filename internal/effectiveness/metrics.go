// SPDX-License-Identifier: Apache-2.0

package effectiveness

import (
	"context"
	"maps"
	"slices"

	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// AskMetrics asks for each query in the three windows, and returns the series to judge. A Prometheus that
// gives no answer, or refuses the token, is not asked for the other queries: each would wait as long.
func (s *Sources) AskMetrics(ctx context.Context, q *Question) (all []effect.Series) {
	windows := effect.PlaceMetricWindows(q.DriftTime, q.WrittenTime, q.StabilizedTime, q.Now)
	var away *source.Error
	for i := range q.Queries {
		query := &q.Queries[i]
		found := map[string]*effect.Series{}
		failure := away
		if failure == nil {
			failure = s.fill(ctx, q, query, &windows, found)
		}
		if failure != nil {
			all = append(all, effect.Series{Name: query.Name, Objective: query.Objective, Floor: query.Floor, Why: failure.Message})
			if failure.Fault == source.Unreachable || failure.Fault == source.Refused {
				away = failure
			}
			continue
		}
		for _, labels := range slices.Sorted(maps.Keys(found)) {
			all = append(all, *found[labels])
		}
	}
	return all
}

// fill asks for one query in each window. A series is compared with itself alone, by its labels: the points
// of two pods are no windows of one metric.
func (s *Sources) fill(ctx context.Context, q *Question, query *effect.Query, windows *effect.MetricWindows, found map[string]*effect.Series) *source.Error {
	promQL, err := q.Target.ExpandQuery(query.PromQL, windows.Range)
	if err != nil {
		return &source.Error{Message: err.Error()}
	}
	of := func(labels string) *effect.Series {
		if found[labels] == nil {
			found[labels] = &effect.Series{Name: query.Name + labels, Objective: query.Objective, Floor: query.Floor, Brief: windows.During.Brief()}
		}
		return found[labels]
	}
	for _, window := range []struct {
		span effect.Span
		keep func(*effect.Series, []float64)
	}{
		{windows.Before, func(s *effect.Series, points []float64) { s.Before = points }},
		{windows.During, func(s *effect.Series, points []float64) { s.During = points }},
		{windows.After, func(s *effect.Series, points []float64) { s.After = points }},
	} {
		var answer []prometheus.Series
		if failure := s.ask(q, prometheus.Name, func() (err error) {
			answer, err = s.Metrics.QueryRange(ctx, promQL, window.span)
			return err
		}); failure != nil {
			return failure
		}
		for _, a := range answer {
			window.keep(of(a.Labels), a.Values)
		}
	}
	switch {
	case len(found) == 0:
		return &source.Error{Message: "the query has no series"}
	case len(found) > prometheus.MaxSeries:
		return &source.Error{Message: "the query has too many series in the three windows"}
	}
	return nil
}
