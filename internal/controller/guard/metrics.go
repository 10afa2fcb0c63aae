// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// EnforcementMetrics are the figures of Enforcement. A nil one counts nothing.
type EnforcementMetrics struct {
	enforced *prometheus.GaugeVec
}

// NewEnforcementMetrics registers plumbline_guard_enforced: 1 while the API server
// proves that a guard that denies is in force, 0 when it does not or when that is
// not known. Guards that do not deny, and suspended ones, have no series.
func NewEnforcementMetrics(registry prometheus.Registerer) (*EnforcementMetrics, error) {
	m := &EnforcementMetrics{enforced: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "plumbline_guard_enforced",
		Help: "Whether the API server proved that a ClusterSpecGuard of mode Deny is in force; 0 when it did not or is not known to have.",
	}, []string{"guard"})}
	if err := registry.Register(m.enforced); err != nil {
		return nil, fmt.Errorf("registering the figures of enforcement: %w", err)
	}
	return m, nil
}

func (m *EnforcementMetrics) set(guard string, enforced bool) {
	if m == nil {
		return
	}
	value := 0.0
	if enforced {
		value = 1
	}
	m.enforced.WithLabelValues(guard).Set(value)
}

func (m *EnforcementMetrics) remove(guard string) {
	if m != nil {
		m.enforced.DeleteLabelValues(guard)
	}
}
