// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

var (
	unfinishedDesc = prometheus.NewDesc("plumbline_remediation_plans_unfinished",
		"Plans that have not ended, by phase.", []string{"environment", "phase"}, nil)
	oldestPlanDesc = prometheus.NewDesc("plumbline_remediation_plan_oldest_seconds",
		"Time since the oldest plan that has not ended was made, by phase; 0 without one.", []string{"phase"}, nil)
	oldestStandbyDesc = prometheus.NewDesc("plumbline_remediation_standby_oldest_seconds",
		"Time since the oldest standby that is not removed was begun; 0 without one.", nil, nil)
	inFlightDesc = prometheus.NewDesc("plumbline_remediation_steps_in_flight",
		"Steps that a ledger granted and that have not ended.", []string{"ledger"}, nil)
	oldestStepDesc = prometheus.NewDesc("plumbline_remediation_step_oldest_seconds",
		"Time since the oldest step that has not ended was granted; 0 without one.", []string{"ledger"}, nil)
	haltedDesc = prometheus.NewDesc("plumbline_remediation_ledger_halted",
		"1 while a person has halted all that a ledger grants.", []string{"ledger"}, nil)
	refusesDesc = prometheus.NewDesc("plumbline_remediation_ledger_refuses",
		"1 while a ledger grants no step, because the grants before it are unknown.", []string{"ledger"}, nil)
	breakerDesc = prometheus.NewDesc("plumbline_remediation_circuit_breaker_open",
		"1 while the circuit breaker of a policy is open or half open.", []string{"policy"}, nil)
	skewDesc = prometheus.NewDesc("plumbline_remediation_clock_skew_seconds",
		"How far the executor's clock is ahead of the API server's; absent while that is not known.", nil, nil)
)

// unfinishedPhases are those of a plan that has not ended.
var unfinishedPhases = []v1alpha1.PlanPhase{
	v1alpha1.PlanCreated, v1alpha1.PlanScheduled, v1alpha1.PlanDeferred, v1alpha1.PlanRunning, v1alpha1.PlanPaused, v1alpha1.PlanSealing,
}

// Backlog makes metrics of what plans, ledgers and the clock say when they are
// asked for, so that they are right after a restart too, and end with what they
// are about.
type Backlog struct {
	// Cached reads plans, ledgers and policies.
	Cached client.Reader
	Time   exec.Time
	// Active says whether this replica leads; the others tell nothing.
	Active func() bool
}

// Describe implements prometheus.Collector.
func (b *Backlog) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{unfinishedDesc, oldestPlanDesc, oldestStandbyDesc, inFlightDesc, oldestStepDesc, haltedDesc, refusesDesc, breakerDesc, skewDesc} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector. What cannot be read tells nothing.
func (b *Backlog) Collect(ch chan<- prometheus.Metric) {
	if !b.Active() {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	if skew := b.Time.Skew(); skew != window.SkewUnknown {
		gauge(skewDesc, skew.Seconds())
	}
	now := b.Time.Now()
	var plans v1alpha1.RemediationPlanList
	if b.Cached.List(context.Background(), &plans, client.UnsafeDisableDeepCopy) == nil {
		tellPlans(plans.Items, now, gauge)
	}
	var ledgers v1alpha1.RemediationLedgerList
	var policies v1alpha1.RemediationPolicyList
	if b.Cached.List(context.Background(), &ledgers, client.UnsafeDisableDeepCopy) != nil ||
		b.Cached.List(context.Background(), &policies, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	for i := range ledgers.Items {
		tellLedger(&ledgers.Items[i], now, gauge)
	}
	for i := range policies.Items {
		gauge(breakerDesc, truth(breaks(ledgers.Items, &policies.Items[i])), policies.Items[i].Name)
	}
}

type gaugeFunc func(desc *prometheus.Desc, value float64, labels ...string)

func tellPlans(plans []v1alpha1.RemediationPlan, now time.Time, gauge gaugeFunc) {
	counts := map[[2]string]int{}
	oldest, oldestStandby := map[v1alpha1.PlanPhase]time.Duration{}, time.Duration(0)
	for i := range plans {
		p := &plans[i]
		phase := phaseOf(p)
		if protocol.Final(phase) {
			continue
		}
		counts[[2]string{p.Spec.Plan.EnvironmentName, telemetry.SpellWord(string(phase))}]++
		oldest[phase] = max(oldest[phase], now.Sub(p.CreationTimestamp.Time))
		for j := range p.Status.Steps {
			if s := p.Status.Steps[j].Standby; s != nil && s.Phase != v1alpha1.StandbyRemoved {
				oldestStandby = max(oldestStandby, now.Sub(s.StartTime.Time))
			}
		}
	}
	gauge(oldestStandbyDesc, oldestStandby.Seconds())
	for key, n := range counts {
		gauge(unfinishedDesc, float64(n), key[0], key[1])
	}
	for _, phase := range unfinishedPhases {
		gauge(oldestPlanDesc, oldest[phase].Seconds(), telemetry.SpellWord(string(phase)))
	}
}

// phaseOf a plan; one that nobody has looked at yet is Created.
func phaseOf(p *v1alpha1.RemediationPlan) v1alpha1.PlanPhase {
	if p.Status.Phase == "" {
		return v1alpha1.PlanCreated
	}
	return p.Status.Phase
}

func tellLedger(l *v1alpha1.RemediationLedger, now time.Time, gauge gaugeFunc) {
	open, oldest := 0, time.Duration(0)
	for i := range l.Status.Entries {
		if e := &l.Status.Entries[i]; e.CompletionTime == nil {
			open++
			oldest = max(oldest, now.Sub(e.ReservationTime.Time))
		}
	}
	gauge(inFlightDesc, float64(open), l.Name)
	gauge(oldestStepDesc, oldest.Seconds(), l.Name)
	gauge(haltedDesc, truth(l.Spec.Halt != nil), l.Name)
	gauge(refusesDesc, truth(l.Status.GrantStartTime != nil && l.Status.GrantStartTime.After(now)), l.Name)
}

// breaks says whether a policy's circuit breaker is not closed, in any ledger.
func breaks(ledgers []v1alpha1.RemediationLedger, policy *v1alpha1.RemediationPolicy) bool {
	for i := range ledgers {
		for j := range ledgers[i].Status.Breakers {
			b := &ledgers[i].Status.Breakers[j]
			if b.PolicyUID == string(policy.UID) && b.State != v1alpha1.BreakerClosed {
				return true
			}
		}
	}
	return false
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
