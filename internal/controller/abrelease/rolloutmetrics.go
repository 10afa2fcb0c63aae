// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// The gauges are computed when Prometheus asks, from the releases that the leader has looked at.
var (
	runsDesc = prometheus.NewDesc("plumbline_release_runs",
		"Releases by the state of their last run; on the leader.", []string{"state"}, nil)
	waitingDesc = prometheus.NewDesc("plumbline_release_waiting",
		"Releases by the reason that they wait for; on the leader.", []string{"reason"}, nil)
	overdueDesc = prometheus.NewDesc("plumbline_release_overdue",
		"Releases that wait past a deadline, by the reason that they wait for; on the leader.", []string{"reason"}, nil)
	checkpointDesc = prometheus.NewDesc("plumbline_release_checkpoint_bytes",
		"Bytes of the largest checkpoint of the judge in the status of a release; on the leader.", nil, nil)
)

// RolloutMetrics tell of the rollouts of all releases. They outlive a time of leading; nil ones tell
// nothing. While the process does not lead, the gauges are 0.
type RolloutMetrics struct {
	stages, verdicts, cells, answers *prometheus.CounterVec
	gaps                             prometheus.Counter
	decided                          *prometheus.HistogramVec
	rolledBack                       prometheus.Histogram

	mu sync.Mutex
	// clock is nil while the process does not lead.
	clock    clock.PassiveClock
	releases map[types.NamespacedName]standing
	// answered has the last answer of each gate that was counted.
	answered map[types.NamespacedName]map[gates.Key]answer
}

// standing is what the gauges need of one release.
type standing struct {
	state      rollout.RunState
	waiting    rollout.WaitReason
	deadline   time.Time
	checkpoint int
	// weights are empty while no run is on.
	weights []weight
}

// NewRolloutMetrics registers them. Each label value is there from the start, so that the first count
// is an increase.
func NewRolloutMetrics(registry prometheus.Registerer) (*RolloutMetrics, error) {
	m := &RolloutMetrics{
		stages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_release_stages_total",
			Help: "Stages of rollouts that ended, by result: succeeded, failed, skipped.",
		}, []string{"result"}),
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_release_verdicts_total",
			Help: "Verdicts that decided or held a stage of a rollout, by verdict: Pass, Fail, BothBad, Undecided, NoData.",
		}, []string{"verdict"}),
		cells: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_release_cells_total",
			Help: "Cells of ten seconds that the judge has counted to runs, by arm: canary, active.",
		}, []string{"arm"}),
		gaps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_release_gaps_total",
			Help: "Proxies and replicas that have lost counts of a run.",
		}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_release_gate_answers_total",
			Help: "Answers of gates that a decision has taken, by kind, Query or Webhook, and result: Pass, Fail, Wait, NoData.",
		}, []string{"kind", "result"}),
		decided: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "plumbline_release_verdict_duration_seconds",
			Help:    "From the start of the clock of a stage to its verdict, Pass or Fail.",
			Buckets: []float64{10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400},
		}, []string{"verdict"}),
		rolledBack: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "plumbline_release_rollback_duration_seconds",
			Help:    "From the decision to roll a run back until proxies acknowledged it, in whole seconds.",
			Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600},
		}),
	}
	for _, state := range []rollout.StageState{rollout.StageSucceeded, rollout.StageFailed, rollout.StageSkipped} {
		m.stages.WithLabelValues(resultOf(state))
	}
	for _, verdict := range []judge.Verdict{judge.Pass, judge.Fail, judge.BothBad, judge.Undecided, judge.NoData} {
		m.verdicts.WithLabelValues(string(verdict))
	}
	for _, verdict := range []judge.Verdict{judge.Pass, judge.Fail} {
		m.decided.WithLabelValues(string(verdict))
	}
	for _, arm := range []string{canaryArm, activeArm} {
		m.cells.WithLabelValues(arm)
	}
	for _, result := range []gates.Result{gates.Pass, gates.Fail, gates.Wait, gates.NoData} {
		m.answers.WithLabelValues(kindLabel(gates.KindQuery), string(result))
		m.answers.WithLabelValues(kindLabel(gates.KindWebhook), string(result))
	}
	for _, c := range []prometheus.Collector{m.stages, m.verdicts, m.cells, m.gaps, m.answers, m.decided, m.rolledBack, m} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of rollouts: %w", err)
		}
	}
	return m, nil
}

// resultOf names how a stage ended; empty for a stage that has not ended.
func resultOf(state rollout.StageState) string {
	switch state {
	case rollout.StageSucceeded:
		return "succeeded"
	case rollout.StageFailed:
		return "failed"
	case rollout.StageSkipped:
		return "skipped"
	case rollout.StagePending, rollout.StageRunning:
	}
	return ""
}

// lead has the gauges tell of releases until the returned function is called.
func (m *RolloutMetrics) lead(c clock.PassiveClock) (resign func()) {
	if m == nil {
		return func() {}
	}
	set := func(c clock.PassiveClock) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.clock, m.releases, m.answered = c, map[types.NamespacedName]standing{}, map[types.NamespacedName]map[gates.Key]answer{}
	}
	set(c)
	return func() { set(nil) }
}

// count adds what a stored decision has changed.
func (m *RolloutMetrics) count(t rollout.Tally) {
	if m == nil {
		return
	}
	for state, n := range t.Stages {
		m.stages.WithLabelValues(resultOf(state)).Add(float64(n))
	}
	for verdict, n := range t.Verdicts {
		m.verdicts.WithLabelValues(string(verdict)).Add(float64(n))
	}
	for _, d := range t.Durations {
		m.decided.WithLabelValues(string(d.Verdict)).Observe(d.Duration.Seconds())
	}
	m.cells.WithLabelValues(canaryArm).Add(float64(t.Counts.CanaryCells))
	m.cells.WithLabelValues(activeArm).Add(float64(t.Counts.ActiveCells))
	m.gaps.Add(float64(t.Counts.Gaps))
	if t.RolledBack {
		m.rolledBack.Observe(t.RollbackDuration.Seconds())
	}
}

// note remembers what the status of a release says.
func (m *RolloutMetrics) note(name types.NamespacedName, status *v1alpha1.ABReleaseStatus) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock == nil { // the release was looked at as the lead was lost
		return
	}
	if status.Rollout == nil || status.Rollout.Run == nil {
		delete(m.releases, name)
		return
	}
	s := standingOf(status.Rollout)
	if !s.state.Ended() {
		s.weights = weightsOf(status)
	}
	m.releases[name] = s
}

func standingOf(in *v1alpha1.RolloutStatus) standing {
	s := standing{state: rollout.RunState(in.Run.State)}
	if w := in.Waiting; w != nil {
		s.waiting = rollout.WaitReason(w.Reason)
		if w.DeadlineTime != nil {
			s.deadline = w.DeadlineTime.Time
		}
	}
	if in.Analysis != nil {
		s.checkpoint = len(in.Analysis.Checkpoint)
	}
	return s
}

// forget a release that is gone.
func (m *RolloutMetrics) forget(name types.NamespacedName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.releases, name)
	delete(m.answered, name)
}

// Describe implements prometheus.Collector.
func (*RolloutMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{runsDesc, waitingDesc, overdueDesc, checkpointDesc} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *RolloutMetrics) Collect(out chan<- prometheus.Metric) {
	c := m.takeCensus()
	for _, state := range rollout.RunStates() {
		out <- prometheus.MustNewConstMetric(runsDesc, prometheus.GaugeValue, float64(c.runs[state]), string(state))
	}
	for _, reason := range rollout.WaitReasons() {
		out <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(c.waiting[reason]), string(reason))
		out <- prometheus.MustNewConstMetric(overdueDesc, prometheus.GaugeValue, float64(c.overdue[reason]), string(reason))
	}
	out <- prometheus.MustNewConstMetric(checkpointDesc, prometheus.GaugeValue, float64(c.checkpoint))
}

// census is what the gauges show.
type census struct {
	runs             map[rollout.RunState]int
	waiting, overdue map[rollout.WaitReason]int
	checkpoint       int
}

func (m *RolloutMetrics) takeCensus() census {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := census{map[rollout.RunState]int{}, map[rollout.WaitReason]int{}, map[rollout.WaitReason]int{}, 0}
	if m.clock == nil {
		return c
	}
	now := m.clock.Now()
	for _, s := range m.releases {
		c.runs[s.state]++
		if s.waiting != "" {
			c.waiting[s.waiting]++
		}
		if !s.deadline.IsZero() && now.After(s.deadline) {
			c.overdue[s.waiting]++
		}
		c.checkpoint = max(c.checkpoint, s.checkpoint)
	}
	return c
}
