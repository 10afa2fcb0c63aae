// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of what is carried out. What plans and ledgers say together is not here:
// see Backlog, which reads it when it is asked for.
type Metrics struct {
	plans, targets, limited            *prometheus.CounterVec
	planDuration, targetDuration, wait *prometheus.HistogramVec
	evidence                           evidenceMetrics
}

// durations from a second to a day.
var durations = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600}

// reactions from a tenth of a second to a day.
var reactions = []float64{.1, .25, .5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}

// NewMetrics registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		plans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_remediation_plans_total",
			Help: "Plans that ended, by the phase they ended in.",
		}, []string{"environment", "policy", "status"}),
		targets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_remediation_targets_total",
			Help: "Targets that a plan is done with, by how: succeeded, skipped, failed, fenced.",
		}, []string{"environment", "action", "status"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_remediation_rate_limit_hits_total",
			Help: "Times that a plan began to wait for a limit, a window or a brake.",
		}, []string{"policy"}),
		planDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "plumbline_remediation_plan_duration_seconds",
			Help: "Time from a plan's first granted step to its end.", Buckets: durations,
		}, []string{"environment", "strategy"}),
		targetDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "plumbline_remediation_target_duration_seconds",
			Help: "Time from the grant of a step to its end.", Buckets: durations,
		}, []string{"environment", "action"}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "plumbline_remediation_detection_to_action_seconds",
			Help: "Time from when a drift was first seen to the intent to write its target.", Buckets: reactions,
		}, []string{"environment", "severity"}),
		evidence: newEvidenceMetrics(),
	}
	all := append([]prometheus.Collector{m.plans, m.targets, m.limited, m.planDuration, m.targetDuration, m.wait}, m.evidence.collectors()...)
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of remediation: %w", err)
		}
	}
	return m, nil
}
