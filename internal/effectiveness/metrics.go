// SPDX-License-Identifier: Apache-2.0

package effectiveness

import (
	"context"
	"maps"
	"slices"

	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// AskMetrics asks for each query in the three windows, and returns the series to judge.
func (s *Sources) AskMetrics(ctx context.Context, q *Question) (all []effect.Series) {
	windows := effect.WindowsOf(q.DriftTime, q.WrittenTime, q.StabilizedTime, q.Now)
	for i := range q.Queries {
		all = append(all, s.seriesOf(ctx, q, &q.Queries[i], &windows)...)
	}
	return all
}

// seriesOf asks for one query. A series is compared with itself alone, by its labels: the points of two
// pods are no windows of one metric.
func (s *Sources) seriesOf(ctx context.Context, q *Question, query *effect.Query, windows *effect.MetricWindows) []effect.Series {
	of := func(labels string) effect.Series {
		return effect.Series{Name: query.Name + labels, Objective: query.Objective, Floor: query.Floor}
	}
	because := func(why string) []effect.Series {
		series := of("")
		series.Why = why
		return []effect.Series{series}
	}
	promQL, err := q.Target.ExpandQuery(query.PromQL, windows.Range)
	if err != nil {
		return because(err.Error())
	}
	found := map[string]*effect.Series{}
	for _, window := range []struct {
		span   effect.Span
		points func(*effect.Series) *[]float64
	}{
		{windows.Before, func(s *effect.Series) *[]float64 { return &s.Before }},
		{windows.During, func(s *effect.Series) *[]float64 { return &s.During }},
		{windows.After, func(s *effect.Series) *[]float64 { return &s.After }},
	} {
		var answer []prometheus.Series
		why := s.ask(q, prometheus.Name, func() (err error) {
			answer, err = s.Metrics.QueryRange(ctx, promQL, window.span)
			return err
		})
		if why != "" {
			return because(why)
		}
		for _, a := range answer {
			if found[a.Labels] == nil {
				series := of(a.Labels)
				found[a.Labels] = &series
			}
			*window.points(found[a.Labels]) = a.Values
		}
	}
	switch {
	case len(found) == 0:
		return because("the query has no series")
	case len(found) > prometheus.MaxSeries:
		return because("the query has too many series in the three windows")
	}
	all := make([]effect.Series, 0, len(found))
	for _, labels := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[labels])
	}
	return all
}
