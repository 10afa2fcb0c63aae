// SPDX-License-Identifier: Apache-2.0

package releasework

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

var (
	worksDesc = prometheus.NewDesc("plumbline_release_works",
		"ReleaseWorks that are kept, by verb and phase; on the executor that leads.", []string{"verb", "phase"}, nil)
	oldestDesc = prometheus.NewDesc("plumbline_release_work_oldest_seconds",
		"Time since the oldest ReleaseWork that has not ended was made; 0 without one; on the executor that leads.", nil, nil)
)

// The labels of works, in the order of the kind.
var (
	verbs  = []v1alpha1.ReleaseWorkVerb{v1alpha1.WorkCreateClone, v1alpha1.WorkScale, v1alpha1.WorkUpdateBaseline, v1alpha1.WorkHoldMinReplicas}
	phases = []v1alpha1.ReleaseWorkPhase{v1alpha1.WorkPending, v1alpha1.WorkRunning, v1alpha1.WorkSucceeded, v1alpha1.WorkRefused, v1alpha1.WorkFailed}
	// reasons are those with which works end or wait.
	reasons = []v1alpha1.ReleaseWorkReason{
		v1alpha1.WorkReleaseGone, v1alpha1.WorkReleaseReplaced, v1alpha1.WorkReleaseDeleted, v1alpha1.WorkRunOver, v1alpha1.WorkInvalidSpec,
		v1alpha1.WorkBaselineGone, v1alpha1.WorkBaselineChanged, v1alpha1.WorkCloneGone, v1alpha1.WorkNotOwned, v1alpha1.WorkGitOpsOwned,
		v1alpha1.WorkNotAllowed, v1alpha1.WorkRequesterNotTrusted, v1alpha1.WorkTargetClaimed, v1alpha1.WorkHalted, v1alpha1.WorkQueued, v1alpha1.WorkWouldNotConverge, v1alpha1.WorkWriteRefused,
		v1alpha1.WorkTargetMoved, v1alpha1.WorkTerminating, v1alpha1.WorkUnreadable, v1alpha1.WorkAutoscalerMissing,
		v1alpha1.WorkAutoscalerAmbiguous, v1alpha1.WorkAutoscalerTooSmall, v1alpha1.WorkAutoscalerControlled,
		v1alpha1.WorkGroupGone, v1alpha1.WorkGroupChanged, v1alpha1.WorkGroupAutoscaled, v1alpha1.WorkCapacityShort, v1alpha1.WorkTooManyReplicas,
		v1alpha1.WorkEvidenceUnavailable,
	}
)

// Metrics tell of ReleaseWorks. The gauges are computed when Prometheus asks, so they are right after a
// restart. A nil Metrics counts nothing.
type Metrics struct {
	refused *prometheus.CounterVec
	// cached reads works, and active says whether this replica leads; the others tell nothing.
	cached client.Reader
	active func() bool
	time   exec.Time
}

// NewMetrics registers them. Each reason is there from the start, so that the first count is an increase.
func NewMetrics(registry prometheus.Registerer, cached client.Reader, time exec.Time, active func() bool) (*Metrics, error) {
	m := &Metrics{cached: cached, active: active, time: time, refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_release_works_refused_total",
		Help: "ReleaseWorks that were refused or failed, by reason.",
	}, []string{"reason"})}
	for _, reason := range reasons {
		m.refused.WithLabelValues(string(reason))
	}
	for _, c := range []prometheus.Collector{m.refused, m} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of ReleaseWorks: %w", err)
		}
	}
	return m, nil
}

// count adds a work that has ended, once its end is stored.
func (m *Metrics) count(status *v1alpha1.ReleaseWorkStatus) {
	if m != nil && status.Phase != v1alpha1.WorkSucceeded {
		m.refused.WithLabelValues(string(status.Reason)).Inc()
	}
}

// Describe implements prometheus.Collector.
func (*Metrics) Describe(out chan<- *prometheus.Desc) {
	out <- worksDesc
	out <- oldestDesc
}

// Collect implements prometheus.Collector. Works that cannot be read tell nothing.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	if !m.active() {
		return
	}
	var works v1alpha1.ReleaseWorkList
	if m.cached.List(context.Background(), &works, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	counts, oldest := census(works.Items, m.time.Now())
	for _, verb := range verbs {
		for _, phase := range phases {
			out <- prometheus.MustNewConstMetric(worksDesc, prometheus.GaugeValue, float64(counts[kindOfWork{verb, phase}]), string(verb), string(phase))
		}
	}
	out <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, oldest.Seconds())
}

// kindOfWork is what works are counted by.
type kindOfWork struct {
	verb  v1alpha1.ReleaseWorkVerb
	phase v1alpha1.ReleaseWorkPhase
}

// census counts works, and finds the age of the oldest that has not ended. A work that no executor has looked
// at is pending.
func census(works []v1alpha1.ReleaseWork, now time.Time) (counts map[kindOfWork]int, oldest time.Duration) {
	counts = map[kindOfWork]int{}
	for i := range works {
		w := &works[i]
		phase := w.Status.Phase
		if phase == "" {
			phase = v1alpha1.WorkPending
		}
		counts[kindOfWork{w.Spec.Verb, phase}]++
		if !work.Final(phase) {
			oldest = max(oldest, now.Sub(w.CreationTimestamp.Time))
		}
	}
	return counts, oldest
}
