// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"context"
	"strconv"

	"github.com/plumbline-dev/plumbline/internal/effectiveness"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// The bounds of what is stored of metrics.
const (
	maxMetrics       = 32
	maxMetricName    = 320
	maxMetricMessage = 256
)

// Series asks for the metrics of a target.
type Series struct {
	Sources *effectiveness.Sources
	Time    Time
}

// Ask implements [Source].
func (x *Series) Ask(ctx context.Context, a *v1alpha1.EffectivenessAssessment, _ *Sight) Answer {
	q := questionOf(a)
	q.Now = x.Time.Now()
	if len(q.Queries) == 0 {
		return Answer{AssessedComponent: StoreComponent(v1alpha1.ComponentMetrics, effect.Component{State: effect.NotConfigured, Why: "the policy asks for no metrics"})}
	}
	var outcomes []effect.MetricOutcome
	for _, series := range x.Sources.AskMetrics(ctx, q) {
		outcomes = append(outcomes, effect.JudgeMetric(series))
	}
	answer := Answer{AssessedComponent: StoreComponent(v1alpha1.ComponentMetrics, effect.JudgeMetrics(outcomes))}
	for i := range outcomes[:min(len(outcomes), maxMetrics)] {
		answer.Metrics = append(answer.Metrics, measuredOf(&outcomes[i]))
	}
	return answer
}

func measuredOf(m *effect.MetricOutcome) v1alpha1.MeasuredMetric {
	measured := v1alpha1.MeasuredMetric{
		Name: diff.TruncateText(m.Name, maxMetricName), Score: m.Score, Message: diff.TruncateText(diff.Printable(m.Why), maxMetricMessage),
	}
	if m.Score != nil {
		measured.Before, measured.After = digits(m.Before), digits(m.After)
		if !m.Brief {
			measured.During = digits(m.During)
		}
	}
	return measured
}

// digits writes a median with four significant digits.
func digits(value float64) string { return strconv.FormatFloat(value, 'g', 4, 64) }
