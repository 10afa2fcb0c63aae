// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Load is the traffic that a forecast assumes, and its source.
type Load struct {
	judge.Load
	// Source is for people.
	Source string
}

// maxRequestsPerMinute is the highest rate that a forecast takes.
const maxRequestsPerMinute = 1e9

// ParseLoad reads the load that a person gives: requests a minute, and errors in percent. Without both the
// load is nil. An error names the number that cannot be.
func ParseLoad(requestsPerMinute, errorRate string) (*Load, error) {
	if requestsPerMinute == "" && errorRate == "" {
		return nil, nil //nolint:nilnil // no load is no error
	}
	if requestsPerMinute == "" || errorRate == "" {
		return nil, errors.New("a forecast needs both --requests-per-minute and --error-rate")
	}
	requests, err := strconv.ParseFloat(requestsPerMinute, 64)
	if err != nil || !(requests > 0 && requests <= maxRequestsPerMinute) { // as not a number is neither
		return nil, fmt.Errorf("--requests-per-minute is %q, want a number above 0 and at most %g", requestsPerMinute, float64(maxRequestsPerMinute))
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(errorRate, "%"), 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return nil, fmt.Errorf("--error-rate is %q, want a percentage from 0 to 100, such as 0.3", errorRate)
	}
	return &Load{judge.Load{RequestsPerMinute: requests, ErrorRate: percent / 100}, "given by --requests-per-minute and --error-rate"}, nil
}

// LoadOf returns the load that the status of a release has measured: the requests of all variations, and the
// errors of the active one. It is nil without requests, or without the count of a variation.
func LoadOf(r *v1alpha1.ABRelease) *Load {
	active := r.Status.ActiveVariation
	if active == "" {
		active = r.Spec.Stable
	}
	load := &Load{}
	var window int32
	for i := range r.Status.Observed {
		o := &r.Status.Observed[i]
		if o.Requests == nil || o.WindowSeconds <= 0 {
			return nil
		}
		load.RequestsPerMinute += float64(*o.Requests) * 60 / float64(o.WindowSeconds)
		window = max(window, o.WindowSeconds)
		if o.Variation == active && o.Failed != nil && *o.Requests > 0 {
			load.ErrorRate = min(1, float64(*o.Failed)/float64(*o.Requests))
		}
	}
	if load.RequestsPerMinute == 0 {
		return nil
	}
	load.Source = fmt.Sprintf("status.observed of the release, the last %s", time.Duration(window)*time.Second)
	return load
}

// Forecast tells how long the stages of a strategy take, and how soon they find a regression.
type Forecast struct {
	Load   Load
	Stages []rollout.StageForecast
	// Healthy is how long a healthy canary takes for all stages; 0 if one of them does not pass within a day.
	Healthy time.Duration
}

// ForecastOf returns the forecast of a strategy, for a canary that is compared with such a control; nil if the strategy
// cannot be carried out, or without a load.
func ForecastOf(spec *v1alpha1.RolloutStrategySpec, load *Load, control v1alpha1.ControlType) *Forecast {
	if spec == nil || load == nil {
		return nil
	}
	r := &v1alpha1.ABRelease{}
	r.Spec.Rollout = &v1alpha1.Rollout{Strategy: spec}
	plan, err := rollout.PlanOf(r, nil, anywhere(r))
	if err != nil {
		return nil
	}
	f := &Forecast{Load: *load, Stages: plan.Strategy.Foresee(load.Load, rollout.ControlMode(control))}
	for i := range f.Stages {
		switch s := &f.Stages[i]; {
		case s.IsJudged && s.Healthy == 0:
			f.Healthy = 0
			return f
		case s.IsJudged:
			f.Healthy += s.Healthy
		default:
			f.Healthy += s.Duration
		}
	}
	return f
}
