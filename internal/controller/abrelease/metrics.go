// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// Metrics tell how full the ledger is, while this process leads. They outlive a time of leading; nil ones tell
// nothing.
type Metrics struct {
	entries, bytes   prometheus.Gauge
	refused, dropped prometheus.Counter

	mu    sync.Mutex
	leads bool
}

// NewMetrics registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		entries: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_xds_sequences_entries",
			Help: "Services with a sequence in the ConfigMap of sequences; on the leader.",
		}),
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_xds_sequences_bytes",
			Help: "Bytes that the ConfigMap of sequences takes, of 921600 before Services wait; on the leader.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_xds_sequences_refused_total",
			Help: "Decisions of releases that wait because their namespace has too much of the ConfigMap of sequences.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_xds_sequences_dropped_total",
			Help: "Entries of Services that are gone that were taken out of the ConfigMap of sequences.",
		}),
	}
	for _, c := range []prometheus.Collector{m.entries, m.bytes, m.refused, m.dropped} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of sequences: %w", err)
		}
	}
	return m, nil
}

// lead has the gauges tell of the ledger until the returned function is called: another process writes it then.
func (m *Metrics) lead() (resign func()) {
	if m == nil {
		return func() {}
	}
	set := func(leads bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.leads = leads
		m.entries.Set(0)
		m.bytes.Set(0)
	}
	set(true)
	return func() { set(false) }
}

func (m *Metrics) fill(entries map[string]release.Entry) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leads { // or it was written as the lead was lost
		m.entries.Set(float64(len(entries)))
		m.bytes.Set(float64(release.Size(entries)))
	}
}

func (m *Metrics) refuse() {
	if m != nil {
		m.refused.Inc()
	}
}

func (m *Metrics) drop(n int) {
	if m != nil {
		m.dropped.Add(float64(n))
	}
}
