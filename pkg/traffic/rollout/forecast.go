// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// StageForecast is the forecast for one stage.
type StageForecast struct {
	// Weight of the canary, and RequestsPerMinute that the canary gets by it.
	Weight            traffic.Weight
	RequestsPerMinute float64
	// IsJudged says whether the judge looks at the stage. A stage without requests, and one of all requests
	// and no duration, end without a verdict.
	IsJudged bool
	// Duration is the least time that the stage takes.
	Duration time.Duration
	judge.Outlook
}

// Foresee returns the forecast for each stage of a strategy, as [judge.Foresee] has it with the defaults of the
// judge, where the canary is compared with such a control.
func (s Strategy) Foresee(load judge.Load, control ControlMode) []StageForecast {
	config := judge.DefaultConfig("canary", "active")
	var prospects []judge.Prospect
	for _, stage := range s.Stages {
		if stage.isJudged() {
			p := judge.Prospect{Share: float64(stage.Weight) / float64(traffic.Total), Minimum: stage.Duration, HealthThreshold: stage.HealthThreshold}
			if control == ControlFresh && stage.Weight <= release.MaxControl {
				p.Control = p.Share
			}
			prospects = append(prospects, p)
		}
	}
	outlooks := judge.Foresee(&config, load, prospects)
	forecasts := make([]StageForecast, 0, len(s.Stages))
	for _, stage := range s.Stages {
		f := StageForecast{
			Weight: stage.Weight, RequestsPerMinute: load.RequestsPerMinute * float64(stage.Weight) / float64(traffic.Total),
			IsJudged: stage.isJudged(), Duration: stage.Duration,
		}
		if f.IsJudged {
			f.Outlook, outlooks = outlooks[0], outlooks[1:]
		}
		forecasts = append(forecasts, f)
	}
	return forecasts
}

// isJudged says whether a stage needs a verdict.
func (s Stage) isJudged() bool {
	return s.Weight != 0 && (s.Weight != traffic.Total || s.Duration != 0)
}
