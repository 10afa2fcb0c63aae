// SPDX-License-Identifier: Apache-2.0

//go:build integration

package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/test/harness/monitoring"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

const patience = time.Minute

// configuration scrapes one target often, so that the tests need not wait.
const configuration = `
global: {scrape_interval: 250ms, scrape_timeout: 200ms}
scrape_configs:
- job_name: shop
  static_configs: [{targets: [%q]}]
`

// metrics is a target with 10,000 series of one name, and a few others.
func metrics() string {
	var b strings.Builder
	b.WriteString("errors_ratio{version=\"canary\"} 0.25\nnothing NaN\nendless +Inf\n")
	for i := range 10_000 {
		fmt.Fprintf(&b, "wide{series=\"%d\"} %d\n", i, i)
	}
	return b.String()
}

func TestARealPrometheusGivesOneNumberOrNoData(t *testing.T) {
	body := metrics()
	var away atomic.Bool
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, body) // the scrape tells a part that is missing
	}))
	t.Cleanup(target.Close)
	s := monitoring.StartPrometheus(t, fmt.Sprintf(configuration, strings.TrimPrefix(target.URL, "http://")), "--query.lookback-delta=2s")
	client, err := prometheus.New(source.Config{URL: s.URL()}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	poll.Until(t, patience, "all series are scraped", func() error {
		n, err := client.Query(t.Context(), "count(wide)")
		if err == nil && n != 10_000 {
			err = fmt.Errorf("%v series", n)
		}
		return err
	})
	tests := map[string]struct {
		query string
		want  float64
		fault string // a part of the error
	}{
		"a vector of one sample is its value": {`errors_ratio{version="canary"}`, 0.25, ""},
		"a scalar is its value":               {"scalar(errors_ratio) * 4", 1, ""},
		"10,000 series as one sum":            {"sum(wide)", 49_995_000, ""},
		"10,000 series are not one number":    {"wide", 0, "the answer has more than 1048576 bytes"},
		"series of no name are no number":     {"no_such_metric", 0, "0 samples, want one"},
		"NaN is no number":                    {"nothing", 0, "NaN"},
		"a division of zero by zero is none":  {"vector(0) / 0", 0, "NaN"},
		"an infinite value is no number":      {"endless", 0, "Inf"},
		"an old sample by offset is none":     {"errors_ratio offset 1h", 0, "0 samples, want one"},
		"a range is no number":                {"errors_ratio[1m]", 0, `of type "matrix"`},
		"a text is no number":                 {`"text"`, 0, `of type "string"`},
		"a query that does not parse is told": {"sum(", 0, "Prometheus answers 400: "},
		"100 series are not one number":       {`wide{series=~"99.."}`, 0, "100 samples, want one"},
		"a query that takes too long is told": {"sum_over_time(sum_over_time(wide[1h:100ms])[1h:100ms])", 0, "Prometheus answers 503: query timed out"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := client.Query(t.Context(), tt.query)
			if tt.fault == "" && (err != nil || got != tt.want) || tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
				t.Errorf("the answer is %v, %v; want %v, %q", got, err, tt.want, tt.fault)
			}
		})
	}

	t.Run("a target that is away has no number soon", func(t *testing.T) {
		away.Store(true)
		untilNoData(t, client, "0 samples")
		away.Store(false)
		untilNumber(t, client)
	})
	t.Run("a Prometheus that hangs has no number within the time limit", func(t *testing.T) {
		s.Pause()
		_, err := client.Query(t.Context(), "errors_ratio")
		s.Resume()
		if !errors.Is(err, prometheus.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		untilNumber(t, client)
	})
	t.Run("a Prometheus that is away, and comes back", func(t *testing.T) {
		s.Stop()
		if _, err := client.Query(t.Context(), "errors_ratio"); !errors.Is(err, prometheus.ErrUnreachable) {
			t.Errorf("the error is %v", err)
		}
		s.Start()
		untilNumber(t, client)
	})
}

func untilNumber(t *testing.T, client *prometheus.Client) {
	t.Helper()
	poll.Until(t, patience, "there is a number", func() error {
		_, err := client.Query(t.Context(), "errors_ratio")
		return err
	})
}

func untilNoData(t *testing.T, client *prometheus.Client, why string) {
	t.Helper()
	poll.Until(t, patience, "there is no number: "+why, func() error {
		n, err := client.Query(t.Context(), "errors_ratio")
		if err == nil || !strings.Contains(err.Error(), why) {
			return fmt.Errorf("the answer is %v, %w", n, err)
		}
		return nil
	})
}
