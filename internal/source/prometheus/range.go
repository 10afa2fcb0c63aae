// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/printable"
)

const (
	// rangePath is that of the API for range queries.
	rangePath = "/api/v1/query_range"
	// MaxSeries of one answer.
	MaxSeries = 20
	// maxText bounds what is told of Prometheus' own error, in bytes.
	maxText = 200
)

// Series are the points of one set of labels.
type Series struct {
	// Labels are written as in PromQL, sorted, such as {route="/cart"}; empty for none.
	Labels string
	// Values that are numbers, in the order of their times.
	Values []float64
}

// QueryRange returns the series that a query has in a window, within [source.Timeout]. A window without
// points has none, and is not asked for. Each error is a [source.Error].
func (c *Client) QueryRange(ctx context.Context, promQL string, window effect.Span) ([]Series, error) {
	if window.Empty() {
		return nil, nil
	}
	seconds := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	answer, err := c.client.Post(ctx, rangePath, url.Values{
		"query": {promQL}, "start": {seconds(window.From)}, "end": {seconds(window.To)},
		"step": {strconv.FormatInt(int64(window.Step.Seconds()), 10)}, "timeout": {evaluation.String()},
	})
	if err != nil {
		return nil, err
	}
	return ParseMatrix(answer)
}

// matrix is an answer of the API for range queries, by
// https://prometheus.io/docs/prometheus/latest/querying/api/.
type matrix struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// series is one series of a matrix.
type series struct {
	Metric map[string]string `json:"metric"`
	Values []sample          `json:"values"`
	// Histograms are native ones, which are no numbers.
	Histograms []json.RawMessage `json:"histograms"`
}

// sample is a pair of seconds since 1970 and a number in a string.
type sample [2]json.RawMessage

// ParseMatrix reads the series of an answer to a range query. Values that are no numbers are left out: the
// quotient of no errors and no requests is one. Each error is a [source.Error].
func ParseMatrix(answer source.Answer) ([]Series, error) {
	if err := answer.Check(); err != nil {
		return nil, err
	}
	var in matrix
	err := answer.Unmarshal(&in)
	switch {
	case err == nil && in.Status == "error":
		return nil, answer.Errorf(source.Failed, "%s answers %d: %s", Name, answer.Status, printable.Line(in.Error, maxText))
	case answer.Status != http.StatusOK:
		return nil, answer.Errorf(source.Failed, "%s answers %d", Name, answer.Status)
	case err != nil:
		return nil, err
	case in.Status != "success" || in.Data.ResultType != "matrix":
		return nil, answer.Errorf(source.Malformed, "the answer of %s is no matrix", Name)
	}
	var rows []series
	if json.Unmarshal(in.Data.Result, &rows) != nil || rows == nil {
		return nil, answer.Errorf(source.Malformed, "the answer of %s is no matrix", Name)
	}
	if len(rows) > MaxSeries {
		return nil, answer.Errorf(source.TooLarge, "the query has %d series, want at most %d", len(rows), MaxSeries)
	}
	out := make([]Series, 0, len(rows))
	for i := range rows {
		values, err := rows[i].numbers(&answer)
		if err != nil {
			return nil, err
		}
		out = append(out, Series{Labels: formatLabels(rows[i].Metric), Values: values})
	}
	return out, nil
}

func (s *series) numbers(answer *source.Answer) (values []float64, err error) {
	switch {
	case len(s.Histograms) > 0:
		return nil, answer.Errorf(source.Malformed, "the query has histograms, want numbers")
	case len(s.Values) > effect.MaxPoints:
		return nil, answer.Errorf(source.TooLarge, "a series has %d points, want at most %d", len(s.Values), effect.MaxPoints)
	}
	for _, pair := range s.Values {
		var at float64
		var text string
		if json.Unmarshal(pair[0], &at) != nil || json.Unmarshal(pair[1], &text) != nil {
			return nil, answer.Errorf(source.Malformed, "a sample is not a pair of time and value")
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, answer.Errorf(source.Malformed, "the value %q is no number", printable.Line(text, maxText))
		}
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			values = append(values, value)
		}
	}
	return values, nil
}

// formatLabels writes labels as PromQL does, sorted.
func formatLabels(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	parts := make([]string, 0, len(labels))
	for name, value := range labels {
		parts = append(parts, name+"="+strconv.Quote(value))
	}
	slices.Sort(parts)
	return printable.Line("{"+strings.Join(parts, ",")+"}", maxText)
}
