// SPDX-License-Identifier: Apache-2.0

package traefik

import (
	"fmt"
	"io"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Counts of requests that have an answer. Failed were answered with 5xx, ClientErrors with 4xx.
type Counts struct{ Answered, Failed, ClientErrors uint64 }

func (c Counts) add(o Counts) Counts {
	return Counts{c.Answered + o.Answered, c.Failed + o.Failed, c.ClientErrors + o.ClientErrors}
}

// Metrics are what a Traefik has counted since it started.
type Metrics struct {
	// Started is the start of the process, in seconds since 1970.
	Started float64
	// Reloads are the configurations that the Traefik took.
	Reloads uint64
	// Services are the counts by the name of a service, without its provider.
	Services map[string]Counts
}

// ReadMetrics reads Traefik's metrics in the text format of Prometheus. Requests are those of
// traefik_service_requests_total, by the labels service and code; a service without requests has no line.
func ReadMetrics(text io.Reader) (Metrics, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return Metrics{}, fmt.Errorf("reading metrics: %w", err)
	}
	m := Metrics{Services: map[string]Counts{}}
	started, reloads := families["process_start_time_seconds"].GetMetric(), families["traefik_config_reloads_total"].GetMetric()
	if len(started) != 1 || len(reloads) != 1 {
		return Metrics{}, fmt.Errorf("reading metrics: %d starts and %d counts of reloads, want one of each", len(started), len(reloads))
	}
	m.Started, m.Reloads = started[0].GetGauge().GetValue(), whole(reloads[0])
	for _, metric := range families["traefik_service_requests_total"].GetMetric() {
		if err := m.count(metric); err != nil {
			return Metrics{}, err
		}
	}
	return m, nil
}

func (m Metrics) count(metric *dto.Metric) error {
	labels := map[string]string{}
	for _, l := range metric.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	code, err := strconv.Atoi(labels["code"])
	if err != nil || labels["service"] == "" {
		return fmt.Errorf("reading metrics: a count of requests has the labels %.200q", fmt.Sprint(labels))
	}
	c := Counts{Answered: whole(metric)}
	switch {
	case code >= 500:
		c.Failed = c.Answered
	case code >= 400:
		c.ClientErrors = c.Answered
	}
	name := withoutProvider(labels["service"])
	m.Services[name] = m.Services[name].add(c)
	return nil
}

// whole is the value of a counter, which is neither negative nor a fraction.
func whole(metric *dto.Metric) uint64 {
	value := metric.GetCounter().GetValue()
	if !(value > 0 && value < 1<<53) {
		return 0
	}
	return uint64(value)
}

// Since returns what was counted after a former look. A process that has started since, or a count that went down,
// began from 0.
func (m Metrics) Since(before Metrics) Metrics {
	anew := m.Started != before.Started || m.Reloads < before.Reloads
	d := Metrics{Started: m.Started, Reloads: m.Reloads, Services: map[string]Counts{}}
	if !anew {
		d.Reloads -= before.Reloads
	}
	for name, now := range m.Services {
		then := before.Services[name]
		if anew || now.Answered < then.Answered || now.Failed < then.Failed || now.ClientErrors < then.ClientErrors {
			then = Counts{}
		}
		d.Services[name] = Counts{now.Answered - then.Answered, now.Failed - then.Failed, now.ClientErrors - then.ClientErrors}
	}
	return d
}

// Of returns the counts of a variation on a port, and the requests for the variation that the first one answered.
func (m Metrics) Of(served Served, variation string) (own, failedOver Counts) {
	return m.Services[served.arm(variation)], m.Services[served.arm(variation)+failoverPart]
}
