// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count copies. They outlive a time of leading.
type Metrics struct {
	copies *prometheus.GaugeVec
	writes *prometheus.CounterVec

	mu     sync.Mutex
	states map[string]string // of namespaces
}

// The states of a namespace that is to have a copy.
const (
	stateCurrent = "current"
	stateForeign = "foreign"
	stateStale   = "stale"
)

// NewMetrics registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		copies: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plumbline_xds_ca_copies",
			Help: "Namespaces with proxies, by their copy of the CA certificates: current, stale, or `foreign` when another owner's ConfigMap has its name; on the leader.",
		}, []string{"state"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_xds_ca_writes_total",
			Help: "Writes of copies of the CA certificates, by operation.",
		}, []string{"action"}),
		states: map[string]string{},
	}
	for _, c := range []prometheus.Collector{m.copies, m.writes} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of authorities: %w", err)
		}
	}
	m.reset()
	return m, nil
}

// reset forgets all namespaces, at the beginning and the end of a time of leading.
func (m *Metrics) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.states)
	for _, state := range []string{stateCurrent, stateForeign, stateStale} {
		m.copies.WithLabelValues(state).Set(0)
	}
}

// note says what a namespace's copy is; empty when it needs none. It reports whether
// that is new.
func (m *Metrics) note(namespace, state string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.states[namespace]
	if before == state {
		return false
	}
	if before != "" {
		m.copies.WithLabelValues(before).Dec()
	}
	delete(m.states, namespace)
	if state != "" {
		m.copies.WithLabelValues(state).Inc()
		m.states[namespace] = state
	}
	return true
}
