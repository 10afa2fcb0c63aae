// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var (
	contendedDesc = prometheus.NewDesc("plumbline_drift_contended_objects",
		"Guarded objects that two writers keep changing to and fro.", nil, nil)
	ageDesc = prometheus.NewDesc("plumbline_drift_open_age_seconds",
		"Age of the oldest drift that is still there, by severity; 0 without drift.", []string{"severity"}, nil)
	unattributedDesc = prometheus.NewDesc("plumbline_drift_unattributed_objects",
		"Drifting objects with a finding by an unknown writer.", nil, nil)
)

// levels are all severities, so that a figure of 0 is one that exists.
var levels = []v1alpha1.SeverityLevel{
	v1alpha1.SeverityInfo, v1alpha1.SeverityLow, v1alpha1.SeverityMedium, v1alpha1.SeverityHigh, v1alpha1.SeverityCritical,
}

// listTimeout bounds one look at the cache, which answers at once or not at all.
const listTimeout = time.Second

// Fleet tells what all Baselines say together.
type Fleet struct {
	// Baselines calls a function for each Baseline of the cache, which the function must not change.
	Baselines func(context.Context, func(*v1alpha1.Baseline)) error
	// Active says whether this replica may be asked: one that waits has no cache.
	Active func() bool
	Clock  clock.PassiveClock
}

// tally is what is counted over all Baselines.
type tally struct {
	contended, unattributed int
	oldest                  map[v1alpha1.SeverityLevel]time.Time
}

// add counts one Baseline.
func (t *tally) add(b *v1alpha1.Baseline) {
	if !b.Guarded() {
		return
	}
	status := &b.Status
	if status.Contention != nil {
		t.contended++
	}
	if unattributed(status.Findings) {
		t.unattributed++
	}
	if status.Severity == nil || status.FirstSeenTime == nil {
		return
	}
	level, since := status.Severity.Level, status.FirstSeenTime.Time
	if at, ok := t.oldest[level]; !ok || since.Before(at) {
		t.oldest[level] = since
	}
}

func unattributed(findings []v1alpha1.Finding) bool {
	for i := range findings {
		if findings[i].Actor.Class == v1alpha1.ActorUnknown {
			return true
		}
	}
	return false
}

// Describe implements prometheus.Collector.
func (f *Fleet) Describe(ch chan<- *prometheus.Desc) {
	ch <- contendedDesc
	ch <- ageDesc
	ch <- unattributedDesc
}

// Collect implements prometheus.Collector. Without an answer there are no
// figures, which is not the same as zero.
func (f *Fleet) Collect(ch chan<- prometheus.Metric) {
	if !f.Active() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	t, now := tally{oldest: map[v1alpha1.SeverityLevel]time.Time{}}, f.Clock.Now()
	if err := f.Baselines(ctx, t.add); err != nil {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(contendedDesc, float64(t.contended))
	gauge(unattributedDesc, float64(t.unattributed))
	for _, level := range levels {
		age := 0.0
		if at, ok := t.oldest[level]; ok {
			age = max(0, now.Sub(at).Seconds())
		}
		gauge(ageDesc, age, string(level))
	}
}
