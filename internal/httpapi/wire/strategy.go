// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Strategy is a RolloutStrategy, or the strategy that a release has itself. Such a one has no id.
type Strategy struct {
	ID          string          `json:"id,omitempty" kind:"-" readOnly:"true"`
	Name        string          `json:"name,omitempty" kind:"-"`
	Description string          `json:"description,omitempty"`
	Stages      []StrategyStage `json:"stages"`
	// AutoAdvance and RollbackOnFailure are true if a request leaves them out.
	AutoAdvance         *bool           `json:"autoAdvance,omitempty"`
	RollbackOnFailure   *bool           `json:"rollbackOnFailure,omitempty"`
	HealthCheckInterval *Seconds        `json:"healthCheckInterval,omitempty" minimum:"0" maximum:"8640000000"`
	Queries             []StrategyQuery `json:"queries,omitempty"`
}

// StrategyStage is one step of a ramp.
type StrategyStage struct {
	TrafficPercentage *float64 `json:"trafficPercentage" minimum:"0" maximum:"100"`
	DurationSeconds   *Seconds `json:"durationSeconds" kind:"Duration" minimum:"0" maximum:"8640000000"`
	HealthThreshold   *float64 `json:"healthThreshold,omitempty" minimum:"0" maximum:"100"`
	RequireApproval   *bool    `json:"requireApproval,omitempty"`
}

// StrategyQuery is a query of Prometheus that can hold or fail a stage.
type StrategyQuery struct {
	Name         string           `json:"name"`
	Query        string           `json:"query"`
	Minimum      v1alpha1.Decimal `json:"minimum,omitempty"`
	Maximum      v1alpha1.Decimal `json:"maximum,omitempty"`
	FailureLimit int32            `json:"failureLimit,omitempty"`
}

// Seconds is a duration as a number of seconds.
type Seconds float64

func secondsOf(d time.Duration) Seconds { return Seconds(d.Seconds()) }

// StrategyOf shows a strategy that releases can name.
func StrategyOf(s *v1alpha1.RolloutStrategy) Strategy {
	out := strategyOf(&s.Spec)
	out.ID, out.Name = string(s.UID), s.Name
	return out
}

func strategyOf(spec *v1alpha1.RolloutStrategySpec) Strategy {
	out := Strategy{Stages: []StrategyStage{}}
	show(&out, spec)
	return out
}

// Spec returns the spec that the strategy describes.
func (s *Strategy) Spec() (v1alpha1.RolloutStrategySpec, error) {
	var spec v1alpha1.RolloutStrategySpec
	err := take(&spec, s)
	return spec, err
}

func (s Seconds) duration() metav1.Duration {
	return metav1.Duration{Duration: time.Duration(float64(s) * float64(time.Second)).Round(time.Millisecond)}
}
