// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/plumbline-dev/plumbline/internal/buildinfo"
)

// NewRegistry returns a registry with the Go runtime, the process and
// plumbline_build_info{component,version,revision,go_version}.
func NewRegistry(component string) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	build := buildinfo.Read()
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "plumbline_build_info",
		Help: "Always 1; the labels name the version.",
	}, []string{"component", "version", "revision", "go_version"})
	info.WithLabelValues(component, build.Version, build.Revision, build.GoVersion).Set(1)
	reg.MustRegister(info)
	return reg
}

// Shared registers a collector. Where another part of the same process registered
// its like already, that one is returned, and both count in it.
func Shared[C prometheus.Collector](registry prometheus.Registerer, collector C) (C, error) {
	err := registry.Register(collector)
	if err == nil {
		return collector, nil
	}
	if taken, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if like, ok := taken.ExistingCollector.(C); ok {
			return like, nil
		}
	}
	return collector, err
}

// MetricsHandler serves /metrics of a registry.
func MetricsHandler(reg *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}))
	return mux
}
