// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The calls, as a label.
const (
	callAsk = "ask"
	callPut = "put"
)

// noReason is the label of an answer that is not Unknown.
const noReason = ""

// Metrics are the figures of the mirrors of a process.
type Metrics struct {
	answers *prometheus.CounterVec
	puts    *prometheus.CounterVec
	took    *prometheus.HistogramVec
	resting prometheus.Gauge
	// contradictions are counted where the ledger is at hand, in Consult.
	contradictions prometheus.Counter
}

// NewMetrics registers the figures; a nil registry is for those that nobody reads.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := newMetrics()
	if registry == nil {
		return m, nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.answers, m.puts, m.took, m.resting, m.contradictions} {
		errs = append(errs, registry.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("registering the metrics of the mirror: %w", err)
	}
	return m, nil
}

func newMetrics() *Metrics {
	m := &Metrics{
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_remediation_mirror_answers_total",
			Help: "Answers of the ledgers' copies in Redis, by verdict (Allowed, Refused, Unknown: the ledger alone decides) and, for Unknown, reason.",
		}, []string{"verdict", "reason"}),
		puts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_remediation_mirror_puts_total",
			Help: "Ledgers copied to Redis, by reason why not; empty when it worked.",
		}, []string{"reason"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "plumbline_remediation_mirror_call_seconds",
			Help:    "Seconds that calls to Redis for the ledgers' copies took, by call: ask, put.",
			Buckets: []float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .1},
		}, []string{"call"}),
		resting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_remediation_mirror_resting",
			Help: "1 since Redis failed several times in a row and is left alone, until a call works again.",
		}),
		contradictions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_remediation_mirror_contradictions_total",
			Help: "Answers of a ledger's mirror in Redis that the ledger itself, at the same sequence, does not give: another writer changes the mirror.",
		}),
	}
	m.begin()
	return m
}

// begin makes the series exist, so that rate() sees the first of each.
func (m *Metrics) begin() {
	for _, v := range []Verdict{Allowed, Refused} {
		m.answers.WithLabelValues(string(v), noReason)
	}
	m.puts.WithLabelValues(noReason)
	for _, r := range reasons {
		m.answers.WithLabelValues(label(Unknown), string(r))
		m.puts.WithLabelValues(string(r))
	}
	for _, c := range []string{callAsk, callPut} {
		m.took.WithLabelValues(c)
	}
}

func label(v Verdict) string {
	if v == Unknown {
		return "Unknown"
	}
	return string(v)
}

func (m *Metrics) answered(a Answer) {
	m.answers.WithLabelValues(label(a.Verdict), string(a.Reason)).Inc()
}

func (m *Metrics) put(err error) {
	why := noReason
	if failure, ok := errors.AsType[*MirrorError](err); ok {
		why = string(failure.Reason)
	}
	m.puts.WithLabelValues(why).Inc()
}

func (m *Metrics) called(call string, took time.Duration, resting bool) {
	m.took.WithLabelValues(call).Observe(took.Seconds())
	if resting {
		m.resting.Set(1)
		return
	}
	m.resting.Set(0)
}
