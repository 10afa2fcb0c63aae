// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the figures of the policy that stamps writers.
type Metrics struct {
	force *prometheus.Desc

	mu sync.Mutex
	// known is nil on a replica that does not lead, and never reads the policy.
	known *bool
}

// NewMetrics registers the figures.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{force: prometheus.NewDesc("plumbline_stamp_policy_active",
		"1 while the MutatingAdmissionPolicy that stamps writers and its binding exist, 0 when no stamp is proof. Absent where the webhook stamps, and on a replica that waits.",
		nil, nil)}
	if err := registry.Register(m); err != nil {
		return nil, fmt.Errorf("registering the metrics of the stamp policy: %w", err)
	}
	return m, nil
}

func (m *Metrics) inForce(yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = &yes
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.force }

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		return
	}
	value := 0.0
	if *m.known {
		value = 1
	}
	ch <- prometheus.MustNewConstMetric(m.force, prometheus.GaugeValue, value)
}
