// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
)

// TrafficHour has the counts of the last hour.
type TrafficHour struct {
	Since time.Time     `json:"since" doc:"Nothing is missing from this time on. The history starts again when another replica leads."`
	Cells []TrafficCell `json:"cells" doc:"The oldest first. Cells are counted while a run is under way."`
}

// TrafficCell has the counts of a variation in ten seconds.
type TrafficCell struct {
	Timestamp time.Time `json:"timestamp" doc:"The start of the ten seconds."`
	// Name is the letter of the variation; empty for one that the release does not name, such as a fresh control.
	Name         string `json:"name"`
	Variation    string `json:"variation"`
	Requests     uint64 `json:"requests" doc:"Requests that are over."`
	Failed       uint64 `json:"failed" doc:"Those of them that count against the variation."`
	ClientErrors uint64 `json:"clientErrors" doc:"Answers 4xx, which do not count against the variation."`
	FailedOver   uint64 `json:"failedOver" doc:"Requests that the stable variation has served; they are in no other number."`
}

// HealthHour has the looks of the judge in the last hour.
type HealthHour struct {
	Since time.Time    `json:"since" doc:"Nothing is missing from this time on. The history starts again when another replica leads."`
	Looks []HealthLook `json:"looks" doc:"The oldest first, at most one in ten seconds."`
}

// HealthLook is what the judge said of a stage at one time.
type HealthLook struct {
	Timestamp   time.Time                    `json:"timestamp"`
	Run         int64                        `json:"run"`
	StageNumber int32                        `json:"stageNumber"`
	Verdict     Word[v1alpha1.HealthVerdict] `json:"verdict"`
	Reason      string                       `json:"reason,omitempty"`
	Errors      Bet                          `json:"errors"`
	Latency     Bet                          `json:"latency"`
	// SlowerThan is 0 while latency is not judged.
	SlowerThan float64   `json:"slowerThanMilliseconds"`
	Variations []LookArm `json:"variations" doc:"The canary, and the variation that it is compared with."`
}

// Bet is an e-value with the value that fails the canary.
type Bet struct {
	EValue  float64 `json:"eValue" doc:"The payment of the bet that the canary is worse, for a stake of 1; at most 1e300."`
	FailsAt float64 `json:"failsAt" doc:"The eValue from which on the canary fails."`
}

// LookArm is the health of a variation at one time: rates in percent, and latencies in milliseconds.
type LookArm struct {
	Name          string  `json:"name"`
	Variation     string  `json:"variation"`
	Samples       uint64  `json:"samples" doc:"Requests of the stage that are over."`
	ErrorRate     float64 `json:"errorRate"`
	ErrorRateLow  float64 `json:"errorRateLow" doc:"The lower 95 % bound."`
	ErrorRateHigh float64 `json:"errorRateHigh" doc:"The upper 95 % bound."`
	SlowRate      float64 `json:"slowRate"`
	LatencyP50    float64 `json:"latencyP50" doc:"0 where it is not known."`
	LatencyP99    float64 `json:"latencyP99" doc:"0 where it is not known."`
}

// TrafficHourOf shows the counts of a series.
func TrafficHourOf(spec *v1alpha1.ABReleaseSpec, s *history.Series) *TrafficHour {
	letters, out := lettersOf(spec), &TrafficHour{Since: s.Since.UTC(), Cells: []TrafficCell{}}
	for i := range s.Cells {
		c := &s.Cells[i]
		out.Cells = append(out.Cells, TrafficCell{
			Timestamp: c.Start.UTC(), Name: letters[v1alpha1.VariationName(c.Variation)], Variation: c.Variation,
			Requests: c.Requests, Failed: c.Failed, ClientErrors: c.ClientErrors, FailedOver: c.FailedOver,
		})
	}
	return out
}

// HealthHourOf shows the looks of a series.
func HealthHourOf(spec *v1alpha1.ABReleaseSpec, s *history.Series) *HealthHour {
	letters, out := lettersOf(spec), &HealthHour{Since: s.Since.UTC(), Looks: []HealthLook{}}
	arm := func(a *history.Arm) LookArm {
		return LookArm{
			Name: letters[v1alpha1.VariationName(a.Variation)], Variation: a.Variation, Samples: a.Samples,
			ErrorRate: toPercent(a.ErrorRate), ErrorRateLow: toPercent(a.Low), ErrorRateHigh: toPercent(a.High), SlowRate: toPercent(a.SlowRate),
			LatencyP50: a.LatencyP50, LatencyP99: a.LatencyP99,
		}
	}
	for i := range s.Looks {
		l := &s.Looks[i]
		out.Looks = append(out.Looks, HealthLook{
			Timestamp: l.Time.UTC(), Run: l.Run, StageNumber: l.Stage, Verdict: Spell(v1alpha1.HealthVerdict(l.Verdict)), Reason: string(l.Reason),
			Errors: Bet{l.Errors.E, l.Errors.FailsAt}, Latency: Bet{l.Latency.E, l.Latency.FailsAt}, SlowerThan: l.SlowerThan,
			Variations: []LookArm{arm(&l.Canary), arm(&l.Control)},
		})
	}
	return out
}

// toPercent has four decimals, so that a part of 1 has no digits that come from its binary form.
func toPercent(part float64) float64 { return math.Round(part*1e6) / 1e4 }
