// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"time"
)

// Assessment is a verdict on a stage, with the figures behind it.
type Assessment struct {
	Verdict Verdict `json:"verdict"`
	Reason  Reason  `json:"reason"`
	// ClockStands says that the time of this judgment does not count to the stage.
	ClockStands bool `json:"clockStands"`
	// Errors and Latency are the bets on more failures and on more slow requests.
	Errors  Bet `json:"errors"`
	Latency Bet `json:"latency"`
	// SlowerThan is the bound of latency in milliseconds above which a request is slow; 0 while none
	// is known. Then latency is not judged.
	SlowerThan float64 `json:"slowerThan,omitempty"`
	// R0 is the ratio up to which the canary counts as good as the control.
	R0 float64 `json:"r0"`
	// Gaps count the proxies and parts of which some counts were lost.
	Gaps uint64 `json:"gaps"`
	// Canary and Control are the health of both arms in this stage.
	Canary  HealthResult `json:"canary"`
	Control HealthResult `json:"control"`
	// Run and ControlRun are the counts of both arms over the whole run, which the bet on failures is about.
	Run        Tally `json:"run"`
	ControlRun Tally `json:"controlRun"`
}

// Tally are requests that are over, and the failed ones among them.
type Tally struct {
	Requests uint64 `json:"requests"`
	Failed   uint64 `json:"failed"`
}

// Bet is an e-process, and the ratio of the rates that it is about.
type Bet struct {
	// E is the payment of the bet for a stake of 1; it fails the canary from FailsAt on. It is at most 1e300.
	E       float64 `json:"e"`
	FailsAt float64 `json:"failsAt"`
	// Phi is the dispersion, at least 1.
	Phi float64 `json:"phi"`
	// Ratio has the 95 % bounds of the ratio in this stage, Decides those with the probability that
	// decides.
	Ratio   Interval `json:"ratio"`
	Decides Interval `json:"decides"`
	// Estimate is the most likely ratio in this stage, within Ratio; 0 while it is not known. It decides
	// nothing.
	Estimate float64 `json:"estimate,omitempty"`
}

// HealthResult is the health of one variation in a stage.
type HealthResult struct {
	// Healthy says that HealthPercentage is at least the stage's threshold.
	Healthy bool `json:"healthy"`
	// HealthPercentage is the lower bound of the success rate, in percent, that decides.
	HealthPercentage float64 `json:"healthPercentage"`
	Metrics          Metrics `json:"metrics"`
	// Samples are the requests that are over.
	Samples     uint64    `json:"samples"`
	EvaluatedAt time.Time `json:"evaluatedAt"`
	// ErrorRate has the 95 % bounds of the error rate, Decides those with the probability that
	// decides.
	ErrorRate Interval `json:"errorRate"`
	Decides   Interval `json:"decides"`
	// SlowRate is the part of the requests that is slow.
	SlowRate float64 `json:"slowRate"`
	Cells    uint64  `json:"cells"`
	// ClientErrors are answers 4xx. FailedOver were served by the stable variation, and are in no
	// other number. Neither are failures.
	ClientErrors uint64 `json:"clientErrors"`
	FailedOver   uint64 `json:"failedOver"`
}

// Metrics of a variation in a stage. Rates are parts of 1. Latencies are the bounds of buckets in
// milliseconds, 0 when none is known; a latency above all bounds has the highest.
type Metrics struct {
	SuccessRate float64 `json:"successRate"`
	ErrorRate   float64 `json:"errorRate"`
	LatencyP50  float64 `json:"latencyP50"`
	LatencyP99  float64 `json:"latencyP99"`
}

// Judge returns the verdict on the stage that is under way. It is a function of its arguments alone.
func Judge(s *State, c *Config, f *Facts) Assessment {
	j := s.judgment(c, f)
	verdict, reason := j.decide()
	errors := Bet{
		E: exp(j.logE(nil)), FailsAt: 1 / j.alpha, Phi: j.phi,
		Ratio: ratioBounds(&s.grid, &s.stage.errors, j.stagePhi, Shown), Decides: j.ratioBounds,
	}
	latency := Bet{
		E: exp(j.latencyLogE()), FailsAt: 1 / j.alpha, Phi: j.latencyPhi,
		Ratio:   ratioBounds(&s.grid, &s.stage.latency, j.latencyPhi, Shown),
		Decides: ratioBounds(&s.grid, &s.stage.latency, j.latencyPhi, j.alpha),
	}
	errors.Estimate = estimateRatio(&s.grid, &s.stage.errors, errors.Ratio)
	latency.Estimate = estimateRatio(&s.grid, &s.stage.latency, latency.Ratio)
	return Assessment{
		Verdict: verdict, Reason: reason, ClockStands: verdict == NoData || s.blind(), Errors: errors, Latency: latency,
		SlowerThan: bucketBound(c.Buckets, s.threshold, s.threshold >= 0), R0: s.grid.r0, Gaps: s.gaps,
		Canary:  j.health(&s.stage.canary, s.stage.buckets, j.canaryBounds),
		Control: j.health(&s.stage.control, s.stage.controlBuckets, j.controlBounds),
		Run:     Tally{s.canary.over, s.canary.failed}, ControlRun: Tally{s.control.over, s.control.failed},
	}
}

func (j *judgment) health(a *arm, buckets []uint64, decides Interval) HealthResult {
	p50, known50 := percentile(buckets, 0.5)
	p99, known99 := percentile(buckets, 0.99)
	rate := rateOf(a.over, a.failed)
	return HealthResult{
		Healthy: decides.Upper <= j.facts.allowed(), HealthPercentage: 100 * (1 - decides.Upper),
		Metrics: Metrics{
			SuccessRate: 1 - rate, ErrorRate: rate,
			LatencyP50: bucketBound(j.config.Buckets, p50, known50), LatencyP99: bucketBound(j.config.Buckets, p99, known99),
		},
		Samples: a.over, EvaluatedAt: j.facts.Now,
		ErrorRate: rateBounds(a.over, a.failed, j.stagePhi, Shown), Decides: decides,
		SlowRate: rateOf(a.latency.n, a.latency.x), Cells: a.cells, ClientErrors: a.clientErrors, FailedOver: a.failedOver,
	}
}

// bucketBound returns the upper bound of a bucket, of the highest bucket its lower one; 0 if it is
// not known.
func bucketBound(bounds []float64, bucket int, known bool) float64 {
	if !known || len(bounds) == 0 {
		return 0
	}
	return bounds[min(bucket, len(bounds)-1)]
}

// exp stays within the numbers that JSON has.
func exp(log float64) float64 { return min(math.Exp(log), 1e300) }
