// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

// maxDecimal is the highest number that a status has of a bet.
const maxDecimal = 999_999_999

// keepHealth takes over the health that the status has of the same run: that of the same stage as it is, and
// that of another stage into the list of stages.
func keepHealth(out, before *v1alpha1.RolloutAnalysis) {
	if before == nil || before.Run != out.Run {
		return
	}
	out.Stages = slices.DeleteFunc(slices.Clone(before.Stages), func(s v1alpha1.StageHealth) bool { return s.Stage == out.Stage })
	switch {
	case before.Stage == out.Stage:
		out.HealthResult = before.HealthResult
	case before.Stage > 0 && before.Verdict != "":
		past := v1alpha1.StageHealth{Stage: before.Stage, HealthResult: before.HealthResult}
		past.Message = "" // the stage of the run has it
		out.Stages = append(slices.DeleteFunc(out.Stages, func(s v1alpha1.StageHealth) bool { return s.Stage == past.Stage }), past)
		slices.SortFunc(out.Stages, func(a, b v1alpha1.StageHealth) int { return int(a.Stage - b.Stage) })
	}
}

func resultOf(config *judge.Config, of *judge.Assessment) v1alpha1.HealthResult {
	r := v1alpha1.HealthResult{
		Verdict: v1alpha1.HealthVerdict(of.Verdict), Reason: string(of.Reason), Message: shorten(Describe(of, config.Control), maxLine),
		EvaluationTime: timeOrNil(of.Canary.EvaluatedAt.Truncate(time.Second)), Errors: comparisonOf(&of.Errors), Gaps: countOf(of.Gaps),
		Variations: []v1alpha1.VariationHealth{healthOf(config.Control, &of.Control), healthOf(config.Canary, &of.Canary)},
	}
	if of.SlowerThan > 0 {
		r.SlowerThanMilliseconds, r.Latency = int64(of.SlowerThan), comparisonOf(&of.Latency)
		for i, h := range []*judge.HealthResult{&of.Control, &of.Canary} {
			r.Variations[i].SlowRate = rate(h.SlowRate)
		}
	}
	return r
}

func healthOf(variation string, h *judge.HealthResult) v1alpha1.VariationHealth {
	return v1alpha1.VariationHealth{
		Variation: v1alpha1.VariationName(variation), Healthy: toggle(h.Healthy), HealthPercentage: rate(h.HealthPercentage / 100),
		SuccessRate: rate(h.Metrics.SuccessRate), ErrorRate: rate(h.Metrics.ErrorRate), ErrorRateLow: rate(h.ErrorRate.Lower), ErrorRateHigh: rate(h.ErrorRate.Upper),
		LatencyP50Milliseconds: int64(h.Metrics.LatencyP50), LatencyP99Milliseconds: int64(h.Metrics.LatencyP99),
		Samples: countOf(h.Samples), Cells: countOf(h.Cells),
	}
}

func comparisonOf(b *judge.Bet) *v1alpha1.HealthComparison {
	return &v1alpha1.HealthComparison{
		EValue: decimal(b.E), FailsAt: decimal(b.FailsAt), Dispersion: decimal(b.Phi),
		Ratio: decimalOrNone(b.Estimate), RatioLow: decimalOrNone(b.Ratio.Lower), RatioHigh: decimalOrNone(b.Ratio.Upper),
	}
}

// decimal returns a number with at most four decimals, from 0 to [maxDecimal]. No number becomes the highest
// one, so that it is not taken for a low one.
func decimal(n float64) v1alpha1.Decimal {
	if math.IsNaN(n) {
		n = maxDecimal
	}
	return v1alpha1.Decimal(strconv.FormatFloat(math.Round(1e4*min(max(n, 0), maxDecimal))/1e4, 'f', -1, 64))
}

// decimalOrNone is empty for a number that is not known, which the judge tells by 0.
func decimalOrNone(n float64) v1alpha1.Decimal {
	if n == 0 {
		return ""
	}
	return decimal(n)
}

// rate as a percentage with at most four decimals. No number becomes 0, as the API server would refuse the
// whole status.
func rate(part float64) v1alpha1.Rate {
	if math.IsNaN(part) {
		part = 0
	}
	return v1alpha1.Rate(strconv.FormatFloat(math.Round(1e6*min(max(part, 0), 1))/1e4, 'f', -1, 64))
}

func countOf(n uint64) int64 { return int64(min(n, math.MaxInt64)) } //nolint:gosec // bounded
