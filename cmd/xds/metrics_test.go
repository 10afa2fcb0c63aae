// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/test/metricspage"
)

// TestTheMetricsPageDescribesThisProcess registers all that the process does, by
// starting it where there is no API server and stopping it at once.
func TestTheMetricsPageDescribesThisProcess(t *testing.T) {
	opts := &options.XDS{Address: "127.0.0.1:0"}
	opts.Kubeconfig = unreachable(t)
	s, err := newServer(opts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := s.run(ctx); err != nil {
		t.Fatal(err)
	}
	metricspage.Check(t, "xds", s.registry)
}

func TestSeriesOfReleasesAreRegisteredOnDemand(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		opts := &options.XDS{Address: "127.0.0.1:0", Rollouts: true, ReleaseSeries: wanted}
		opts.Kubeconfig = unreachable(t)
		s, err := newServer(opts, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := s.run(ctx); err != nil {
			t.Fatal(err)
		}
		described := make(chan *prometheus.Desc)
		go func() {
			s.registry.Describe(described)
			close(described)
		}()
		is := false
		for desc := range described {
			is = is || strings.Contains(desc.String(), `"plumbline_release_weight_ratio"`)
		}
		if is != wanted {
			t.Errorf("--release-series=%t: the series are there: %t", wanted, is)
		}
	}
}
