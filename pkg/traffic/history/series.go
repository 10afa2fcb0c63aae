// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

// Series is the last hour of a release, the oldest value first.
type Series struct {
	// Since is the time from which on nothing is missing. Older cells are those that parts of the router still had.
	Since time.Time `json:"since"`
	Cells []Cell    `json:"cells"`
	Looks []Look    `json:"looks"`
}

// Cell has the counts of a variation in ten seconds, over all parts and ports of its router.
type Cell struct {
	// Start of the ten seconds, by the clocks of the parts.
	Start     time.Time `json:"start"`
	Variation string    `json:"variation"`
	// Requests are over, and Failed are those of them that count against the variation. ClientErrors are answers
	// 4xx, which do not. FailedOver were served by the stable variation, and are in no other number.
	Requests     uint64 `json:"requests"`
	Failed       uint64 `json:"failed"`
	ClientErrors uint64 `json:"clientErrors"`
	FailedOver   uint64 `json:"failedOver"`
}

// Look is one judgment of a stage, the last of its ten seconds.
type Look struct {
	Time    time.Time     `json:"time"`
	Run     int64         `json:"run"`
	Stage   int32         `json:"stage"`
	Verdict judge.Verdict `json:"verdict"`
	Reason  judge.Reason  `json:"reason"`
	Errors  Bet           `json:"errors"`
	Latency Bet           `json:"latency"`
	// SlowerThan is the latency in milliseconds above which a request is slow; 0 while latency is not judged.
	SlowerThan float64 `json:"slowerThan"`
	Canary     Arm     `json:"canary"`
	Control    Arm     `json:"control"`
}

// Bet is an e-value, and the value from which on the canary fails.
type Bet struct {
	E       float64 `json:"e"`
	FailsAt float64 `json:"failsAt"`
}

// Arm is the health of a variation in the stage.
type Arm struct {
	Variation string `json:"variation"`
	// Samples are the requests of the stage that are over.
	Samples uint64 `json:"samples"`
	// ErrorRate and SlowRate are parts of 1, and Low and High are the 95 % bounds of the error rate.
	ErrorRate float64 `json:"errorRate"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	SlowRate  float64 `json:"slowRate"`
	// LatencyP50 and LatencyP99 are in milliseconds; 0 where they are not known.
	LatencyP50 float64 `json:"latencyP50"`
	LatencyP99 float64 `json:"latencyP99"`
}

// LookOf keeps of an assessment what a series has. The canary and its control are variations.
func LookOf(run int64, stage int32, a *judge.Assessment, canary, control string) Look {
	return Look{
		Time: a.Canary.EvaluatedAt, Run: run, Stage: stage, Verdict: a.Verdict, Reason: a.Reason,
		Errors: Bet{a.Errors.E, a.Errors.FailsAt}, Latency: Bet{a.Latency.E, a.Latency.FailsAt}, SlowerThan: a.SlowerThan,
		Canary: armOf(canary, &a.Canary), Control: armOf(control, &a.Control),
	}
}

func armOf(variation string, h *judge.HealthResult) Arm {
	return Arm{
		Variation: variation, Samples: h.Samples, ErrorRate: h.Metrics.ErrorRate, Low: h.ErrorRate.Lower, High: h.ErrorRate.Upper, SlowRate: h.SlowRate,
		LatencyP50: h.Metrics.LatencyP50, LatencyP99: h.Metrics.LatencyP99,
	}
}
