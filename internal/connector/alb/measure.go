// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// maxPages bounds the pages of one measurement.
const maxPages = 8

// Measure implements traffic.Router. CloudWatch has the counts of a minute some minutes later, so the cells are late.
// Measure asks CloudWatch once for each minute.
func (r *Router) Measure(ctx context.Context, since traffic.Cursor) (traffic.Measurement, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	part := r.route.balancerDimension()
	m := traffic.Measurement{Next: since, Wanted: 1}
	if r.state.Sequence == 0 {
		return m, nil
	}
	s, more, due := planSpan(since[part], r.state.Began, r.Now())
	if !due {
		return m, nil
	}
	variations := slices.Sorted(maps.Keys(r.Groups))
	c, err := r.readCounts(ctx, s, variations)
	if err != nil {
		return traffic.Measurement{}, err
	}
	for _, cell := range cellsOf(part, variations, s, c, func(from, end time.Time) uint64 { return findSequence(r.periods, from, end) }) {
		if read := since[part]; read.Epoch != epoch || cell.Position.Cell > read.Cell {
			m.Cells = append(m.Cells, cell)
		}
	}
	m.Next, m.More = since.Advance(part, positionBefore(s.end)), more
	return m, nil
}

// readCounts reads all pages of a span. The lock is held.
func (r *Router) readCounts(ctx context.Context, s span, variations []string) (counted, error) {
	c := counted{}
	in := &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(s.from), EndTime: aws.Time(s.end), ScanBy: types.ScanByTimestampAscending,
		MetricDataQueries: queriesOf(r.route.balancerDimension(), variations, r.Groups),
	}
	for range maxPages {
		out, err := callAPI(ctx, r, &r.metricsPause, r.Metrics.GetMetricData, in)
		if err != nil {
			return nil, fmt.Errorf("reading the metrics of %s: %w", r.route, err)
		}
		if err := c.addResults(out.MetricDataResults); err != nil {
			return nil, fmt.Errorf("reading the metrics of %s: %w", r.route, err)
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return c, checkComplete(out.MetricDataResults)
		}
	}
	return nil, fmt.Errorf("reading the metrics of %s: the answer has more than %d pages", r.route, maxPages)
}

// checkComplete returns an error if the last page says that counts are missing.
func checkComplete(results []types.MetricDataResult) error {
	for _, result := range results {
		if result.StatusCode != types.StatusCodeComplete {
			return fmt.Errorf("metric data %s is %s", aws.ToString(result.Id), result.StatusCode)
		}
	}
	return nil
}
