// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// Metrics of what policies do.
type Metrics struct {
	plans   *prometheus.CounterVec
	leftOut *prometheus.GaugeVec

	mu      sync.Mutex
	pending map[string]waiting // by policy
}

// waiting are the drifts of one policy that are to be put back and are not yet.
type waiting struct {
	environment string
	drifts      map[string]v1alpha1.SeverityLevel
	chains      map[chained]effect.ChainRule
}

// chained is what a chain of repairs is about: one action on one object.
type chained struct {
	object string
	action v1alpha1.RemediationAction
}

var pendingDesc = prometheus.NewDesc("plumbline_drift_items_pending_remediation",
	"Drifted objects that an active policy would remediate, or has a plan for, by severity.", []string{"environment", "severity"}, nil)

var chainsDesc = prometheus.NewDesc("plumbline_effectiveness_chains_open",
	"Drifted objects that are left to people because repairs of them did not help, by the rule of the chain.", []string{"rule"}, nil)

// NewMetrics registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		plans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_remediation_plans_created_total",
			Help: "Remediation plans that were made.",
		}, []string{"environment", "policy", "trigger"}),
		leftOut: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plumbline_remediation_left_out",
			Help: "Drifted objects that a policy leaves alone, by the first reason.",
		}, []string{"policy", "reason"}),
		pending: map[string]waiting{},
	}
	for _, c := range []prometheus.Collector{m.plans, m.leftOut, m} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the policies' figures: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) created(plan *v1alpha1.RemediationPlan) {
	p := &plan.Spec.Plan
	m.plans.WithLabelValues(p.EnvironmentName, p.Policy.Name, string(p.Trigger)).Inc()
}

// looked takes over what a look at a policy found.
func (m *Metrics) looked(s *subject) {
	name := s.policy.Name
	m.leftOut.DeletePartialMatch(prometheus.Labels{"policy": name})
	w := waiting{environment: s.policy.Spec.EnvironmentName, drifts: map[string]v1alpha1.SeverityLevel{}, chains: map[chained]effect.ChainRule{}}
	out := map[string]bool{}
	for i := range s.out.LeftOut {
		l := &s.out.LeftOut[i]
		m.leftOut.WithLabelValues(name, string(l.Reason)).Inc()
		switch l.Reason {
		case planner.ReasonUnderWay, planner.ReasonMeasured, planner.ReasonBlastRadius, planner.ReasonUnhealthy:
		default:
			out[keyOf(l.Drift)] = true
		}
	}
	for i := range s.gathered.Input.Drifts {
		if d := &s.gathered.Input.Drifts[i]; s.acts() && !out[keyOf(d)] {
			w.drifts[keyOf(d)] = d.Severity.Level
		}
		if d := &s.gathered.Input.Drifts[i]; s.acts() && d.Chain.Rule != effect.ChainNone {
			w.chains[chained{keyOf(d), planner.ActionOn(&s.policy.Spec, d)}] = d.Chain.Rule
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending[name] = w
}

func keyOf(d *planner.Drift) string { return d.Namespace + "/" + d.Baseline }

func (m *Metrics) forget(policy string) {
	m.leftOut.DeletePartialMatch(prometheus.Labels{"policy": policy})
	m.plans.DeletePartialMatch(prometheus.Labels{"policy": policy})
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pending, policy)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- pendingDesc
	ch <- chainsDesc
}

// Collect implements prometheus.Collector. A drift that two policies would put
// back counts once, as does a chain that holds two policies.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	byEnvironment, chains := map[string]map[string]v1alpha1.SeverityLevel{}, map[chained]effect.ChainRule{}
	for _, w := range m.pending {
		if byEnvironment[w.environment] == nil {
			byEnvironment[w.environment] = map[string]v1alpha1.SeverityLevel{}
		}
		maps.Copy(byEnvironment[w.environment], w.drifts)
		maps.Copy(chains, w.chains)
	}
	policies := len(m.pending)
	m.mu.Unlock()
	if policies > 0 {
		collectChains(ch, chains)
	}
	for environment, drifts := range byEnvironment {
		counts := map[v1alpha1.SeverityLevel]int{}
		for _, level := range drifts {
			counts[level]++
		}
		for _, level := range levels {
			ch <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(counts[level]), environment, strings.ToLower(string(level)))
		}
	}
}

// collectChains counts chains by their rules.
func collectChains(ch chan<- prometheus.Metric, chains map[chained]effect.ChainRule) {
	open := map[effect.ChainRule]int{}
	for _, rule := range chains {
		open[rule]++
	}
	for _, rule := range effect.ChainRules() {
		ch <- prometheus.MustNewConstMetric(chainsDesc, prometheus.GaugeValue, float64(open[rule]), telemetry.SpellWord(string(rule)))
	}
}

// levels are all severities, so that a figure of 0 is one that exists.
var levels = []v1alpha1.SeverityLevel{
	v1alpha1.SeverityInfo, v1alpha1.SeverityLow, v1alpha1.SeverityMedium, v1alpha1.SeverityHigh, v1alpha1.SeverityCritical,
}
