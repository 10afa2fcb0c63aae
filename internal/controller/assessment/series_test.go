// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// metered is an assessment of a drift of an hour whose policy asks for these metrics.
func metered(metrics *v1alpha1.EffectMetrics) *v1alpha1.EffectivenessAssessment {
	return written(func(spec *v1alpha1.EffectivenessAssessmentSpec) {
		spec.DriftTime, spec.Metrics = *at(-time.Hour), metrics
	})
}

func TestMetricsOfAnAssessment(t *testing.T) {
	const m = time.Minute
	one := &v1alpha1.EffectMetrics{Queries: []v1alpha1.EffectQuery{{Name: "errors", Query: "sum(errors{deployment=\"$(name)\"})", Objective: v1alpha1.ObjectiveLower, Floor: "0.001"}}}
	// shape is the value before the drift, during it, and after the write.
	shape := func(before, during, after float64) func(time.Duration) float64 {
		return func(since time.Duration) float64 {
			switch {
			case since < -time.Hour:
				return before
			case since <= 0:
				return during
			}
			return after
		}
	}
	measured := func(before, during, after string, score int32, says string) []v1alpha1.MeasuredMetric {
		return []v1alpha1.MeasuredMetric{{Name: "errors", Score: &score, Before: before, During: during, After: after, Message: says}}
	}
	tests := map[string]struct {
		metrics *v1alpha1.EffectMetrics
		value   func(time.Duration) float64
		want    end
		state   v1alpha1.ComponentState
		all     []v1alpha1.MeasuredMetric
	}{
		"back": {one, shape(0.003, 0.041, 0.003), end{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 6 * m}, v1alpha1.ComponentAssessed, measured("0.003", "0.041", "0.003", 10_000, "back")},
		"defect 12: steady": {one, shape(0.003, 0.003, 0.003), end{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 6 * m},
			v1alpha1.ComponentAssessed, measured("0.003", "0.003", "0.003", 10_000, "the drift was not visible in it")},
		"worse": {one, shape(0.003, 0.041, 0.2), end{v1alpha1.AssessedFull, v1alpha1.VerdictIneffective, 6_154, v1alpha1.IntegrityUnchanged, 6 * m},
			v1alpha1.ComponentAssessed, measured("0.003", "0.041", "0.2", 0, "worse than during the drift")},
		"a policy that asks for none": {nil, shape(0, 1, 0), end{v1alpha1.AssessedFull, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 5 * m}, v1alpha1.ComponentNotConfigured, nil},
		"a floor that is no number": {&v1alpha1.EffectMetrics{Queries: []v1alpha1.EffectQuery{{Name: "errors", Query: "up", Objective: v1alpha1.ObjectiveLower, Floor: "much"}}}, shape(0, 1, 0),
			end{v1alpha1.AssessedMetricsTimedOut, v1alpha1.VerdictEffective, 10_000, v1alpha1.IntegrityUnchanged, 30 * m}, v1alpha1.ComponentNotAnswered,
			[]v1alpha1.MeasuredMetric{{Name: "errors", Message: "its template has no objective and floor that can be used"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, metered(tc.metrics), twoPods(true, true)...)
			w.monitor(&monitored{value: tc.value})
			a := w.run()
			if diff := cmp.Diff(tc.want, endOf(a)); diff != "" {
				t.Errorf("the end (-want +got):\n%s", diff)
			}
			c := componentIn(&a.Status, v1alpha1.ComponentMetrics)
			if diff := cmp.Diff(tc.all, c.Metrics); diff != "" || c.State != tc.state {
				t.Errorf("the component is %s, want %s: %s (-want +got):\n%s", c.State, tc.state, c.Message, diff)
			}
		})
	}
}

func TestAPolicyWithoutQueriesAsksTheDefaultOnes(t *testing.T) {
	w := newWorld(t, metered(&v1alpha1.EffectMetrics{}), twoPods(true, true)...)
	m := &monitored{value: func(time.Duration) float64 { return 1 }}
	w.monitor(m)
	var names []string
	for _, measured := range componentIn(&w.run().Status, v1alpha1.ComponentMetrics).Metrics {
		names = append(names, measured.Name)
	}
	if diff := cmp.Diff([]string{"errors", "latency", "saturation", "throughput"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
