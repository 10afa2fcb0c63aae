// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

const (
	// minute is the shortest period of the metrics of a balancer.
	minute          = time.Minute
	secondsOfMinute = int64(minute / time.Second)
	// lateness is how long after a minute its metrics are complete. CloudWatch promises no time; see the guide.
	lateness = 3 * time.Minute
	// maxMinutes bounds the minutes of one measurement.
	maxMinutes = 30
	// epoch is the only epoch: CloudWatch keeps the counts, so a restart of a process does not begin to count anew.
	epoch = 1
)

// metric is a number that a balancer counts by target group.
type metric int

// The metrics, in the order of metricNames.
const (
	requests metric = iota
	answers5xx
	connectionErrors
	answers4xx
)

// metricNames are names of the namespace AWS/ApplicationELB. The balancer answers 502 when a connection to a target fails,
// and counts the answer for all target groups together, so the connection counts instead.
var metricNames = [...]string{
	requests: "RequestCount", answers5xx: "HTTPCode_Target_5XX_Count", connectionErrors: "TargetConnectionErrorCount", answers4xx: "HTTPCode_Target_4XX_Count",
}

// span is a time of whole minutes.
type span struct{ from, end time.Time }

// planSpan returns the complete minutes after a position, at most [maxMinutes] of them. more tells whether other complete
// minutes follow, and due whether one minute is complete. began is the time of the first split.
func planSpan(read traffic.Position, began, now time.Time) (s span, more, due bool) {
	s.from = ceilMinute(began)
	if read.Epoch == epoch {
		s.from = time.Unix(int64(read.Cell/traffic.MaxVariations)*secondsOfMinute, 0).UTC() //nolint:gosec // minutes since 1970
	}
	s.end = now.Add(-lateness).Truncate(minute)
	if last := s.from.Add(maxMinutes * minute); s.end.After(last) {
		s.end, more = last, true
	}
	return s, more, s.from.Before(s.end)
}

func ceilMinute(at time.Time) time.Time { return at.Add(minute - 1).Truncate(minute) }

// positionOf returns the position of a variation in a minute. The positions of a minute follow those of the minute before.
func positionOf(start time.Time, variation int) traffic.Position {
	at := positionBefore(start)
	at.Cell += uint64(variation) + 1 //nolint:gosec // below MaxVariations
	return at
}

// positionBefore returns the position before the first variation of a minute.
func positionBefore(start time.Time) traffic.Position {
	return traffic.Position{Epoch: epoch, Cell: uint64(start.Unix()/secondsOfMinute) * traffic.MaxVariations} //nolint:gosec // after 1970
}

// queriesOf returns a query for each metric of each variation by minute. The id of a query has the index of the variation.
func queriesOf(balancer string, variations []string, groups Groups) []types.MetricDataQuery {
	var queries []types.MetricDataQuery
	for i, variation := range variations {
		for m, name := range metricNames {
			queries = append(queries, types.MetricDataQuery{Id: aws.String(queryID(i, metric(m))), MetricStat: &types.MetricStat{
				Period: aws.Int32(int32(secondsOfMinute)), Stat: aws.String("Sum"),
				Metric: &types.Metric{Namespace: aws.String("AWS/ApplicationELB"), MetricName: aws.String(name), Dimensions: []types.Dimension{
					{Name: aws.String("LoadBalancer"), Value: aws.String(balancer)},
					{Name: aws.String("TargetGroup"), Value: aws.String(groupDimension(groups[variation]))},
				}},
			}})
		}
	}
	return queries
}

func queryID(variation int, m metric) string { return fmt.Sprintf("v%d_m%d", variation, m) }

// counted has counts by the id of a query and the begin of a minute. A minute without requests has no count.
type counted map[string]map[int64]uint64

// addResults adds the results of one page. It returns an error for a number that is not a count, and for a second count of
// one minute.
func (c counted) addResults(results []types.MetricDataResult) error {
	for _, result := range results {
		id := aws.ToString(result.Id)
		if len(result.Timestamps) != len(result.Values) {
			return fmt.Errorf("metric data %.40q has %d times and %d values", id, len(result.Timestamps), len(result.Values))
		}
		if c[id] == nil {
			c[id] = map[int64]uint64{}
		}
		for i, value := range result.Values {
			at := result.Timestamps[i].Truncate(minute).Unix()
			if _, twice := c[id][at]; twice || value < 0 || value != math.Trunc(value) || value >= 1<<53 {
				return fmt.Errorf("metric data %.40q has the count %g at %s", id, value, result.Timestamps[i].UTC().Format(time.RFC3339))
			}
			c[id][at] = uint64(value)
		}
	}
	return nil
}

// cellsOf returns the cells of a span, in order. A variation without requests has no cell. Failed requests are no more
// than the requests: a connection that fails several times for one request counts each time.
func cellsOf(part string, variations []string, s span, c counted, sequenceOf func(from, end time.Time) uint64) []traffic.Cell {
	var cells []traffic.Cell
	for start := s.from; start.Before(s.end); start = start.Add(minute) {
		sequence := sequenceOf(start, start.Add(minute))
		for i, variation := range variations {
			of := func(m metric) uint64 { return c[queryID(i, m)][start.Unix()] }
			over := of(requests)
			if over == 0 {
				continue
			}
			failed := min(over, of(answers5xx)+of(connectionErrors))
			cells = append(cells, countCell(traffic.Cell{
				Part: part, Position: positionOf(start, i), Variation: variation, Sequence: sequence,
				Start: start, From: start, To: start.Add(minute),
				Over: over, Failed: failed, ClientErrors: min(over-failed, of(answers4xx)),
			}))
		}
	}
	return cells
}

// countCell completes a cell whose counts come from one balancer.
func countCell(cell traffic.Cell) traffic.Cell {
	n, x := float64(cell.Over), float64(cell.Failed)
	cell.Spread = traffic.Spread{Proxies: 1, N: cell.Over, X: cell.Failed, NN: n * n, XN: x * n, XX: x * x}
	cell.Busiest = traffic.Reporter{ID: 1, N: cell.Over, X: cell.Failed}
	if cell.Failed > 0 {
		cell.Loudest = cell.Busiest
	}
	cell.Coverage = traffic.Coverage{Expected: 1, Telling: 1}
	return cell
}
