// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

// The bounds of a strategy.
const (
	MaxStages = 16
	// MinInterval is how often proxies tell counts; a shorter interval sees nothing new.
	MinInterval = 10 * time.Second
)

// Stage is one step of the ramp.
type Stage struct {
	// Weight of the canary, in basis points.
	Weight traffic.Weight
	// Duration is the shortest time that the stage is measured. A stage of no duration ends when proxies
	// have acknowledged its weight.
	Duration time.Duration
	// HealthThreshold is the success rate that the canary has to show, in hundredths of a percent.
	HealthThreshold int
	// RequireApproval has the stage wait for a person once it has passed.
	RequireApproval bool
}

// Strategy is how a run goes forward. A run keeps the strategy that it began with.
type Strategy struct {
	Stages []Stage
	// AutoAdvance goes to the next stage without a person.
	AutoAdvance bool
	// RollbackOnFailure returns all requests to the active variation when a stage fails; otherwise the
	// weight is held.
	RollbackOnFailure bool
	// Interval is how often health is looked at, and how often gates are asked.
	Interval time.Duration
	// Queries are gates of each stage in which the canary has requests.
	Queries []gates.Query
}

// Validate lists the faults of a strategy by field; nil when there is none.
func (s Strategy) Validate() error {
	if n := len(s.Stages); n < 1 || n > MaxStages {
		return fmt.Errorf("stages: %d, want 1 to %d", n, MaxStages)
	}
	var errs []error
	if s.Interval < MinInterval {
		errs = append(errs, fmt.Errorf("healthCheckInterval: %s, want at least %s: proxies tell counts that often", s.Interval, MinInterval))
	}
	for i, stage := range s.Stages {
		if err := stage.validate(); err != nil {
			errs = append(errs, fmt.Errorf("stages[%d].%w", i, err))
		}
		switch {
		case i == 0:
		case stage.Weight == 0:
			errs = append(errs, fmt.Errorf("stages[%d].trafficPercentage: only the first stage can have 0", i))
		case stage.Weight <= s.Stages[i-1].Weight:
			errs = append(errs, fmt.Errorf("stages[%d].trafficPercentage: a stage has more requests than the stage before it", i))
		}
		if stage.Duration == 0 && i < len(s.Stages)-1 {
			errs = append(errs, fmt.Errorf("stages[%d].duration: only the last stage can have no duration", i))
		}
	}
	errs = append(errs, gates.Validate(s.Queries))
	return errors.Join(errs...)
}

func (s Stage) validate() error {
	switch {
	case s.Weight < 0 || s.Weight > traffic.Total:
		return fmt.Errorf("trafficPercentage: %d basis points, want 0 to %d", s.Weight, traffic.Total)
	case s.Duration < 0:
		return fmt.Errorf("duration: %s is negative", s.Duration)
	case s.HealthThreshold < 0 || s.HealthThreshold > 100_00:
		return fmt.Errorf("healthThreshold: %d hundredths of a percent, want 0 to 10000", s.HealthThreshold)
	}
	return nil
}
