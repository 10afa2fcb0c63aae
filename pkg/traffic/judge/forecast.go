// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// ForecastHorizon is how far a forecast looks.
const ForecastHorizon = 24 * time.Hour

const (
	forecastStep = cellSeconds * time.Second
	// forecastFineness is by which part of the time a forecast goes on where steps of a cell are too many.
	forecastFineness = 50
	forecastProxies  = 10
)

// Load is the traffic that a forecast assumes.
type Load struct {
	// RequestsPerMinute of both variations together, and ErrorRate of the control as a part of 1.
	RequestsPerMinute, ErrorRate float64
}

// Prospect is one stage of a forecast.
type Prospect struct {
	// Share of the requests that the canary gets, from 0 to 1.
	Share float64
	// Control is the share of the control; 0 if the control gets the rest.
	Control float64
	// Minimum is how long the stage is measured at least.
	Minimum time.Duration
	// HealthThreshold is the wanted success rate in hundredths of a percent, 0 to 10,000.
	HealthThreshold int
}

// Outlook is the forecast for one stage. A time of 0 says that [ForecastHorizon] is too short.
type Outlook struct {
	// Tenfold and Threefold are when a canary with so many times the errors of the control fails, if it goes bad
	// as the stage begins.
	Tenfold, Threefold time.Duration
	// Healthy is when a canary with the errors of the control passes.
	Healthy time.Duration
}

// Foresee returns the outlook for each stage of a run whose canary is as good as the control until the stage
// begins. Each count is the expected one, rounded to whole requests, of proxies with the same load; so a time
// is near the median of many runs. The arithmetic is that of [State.Count] and [Judge].
func Foresee(c *Config, load Load, stages []Prospect) []Outlook {
	state := New(DefaultR0, 0)
	outlooks := make([]Outlook, 0, len(stages))
	start := time.Unix(0, 0)
	for i := range stages {
		f := forecast{config: c, load: load, stage: &stages[i], number: i + 1, start: start, state: state}
		state.Enter(Stage{Number: f.number, Sequences: []uint64{1}})
		o := Outlook{
			Tenfold: f.search(10, 0, Fail), Threefold: f.search(3, 0, Fail), Healthy: f.search(1, f.stage.Minimum, Pass),
		}
		outlooks = append(outlooks, o)
		lasts := max(o.Healthy, f.stage.Minimum, forecastStep)
		f.count(state, 1, lasts)
		start = start.Add(lasts)
	}
	return outlooks
}

// forecast is one stage of it.
type forecast struct {
	config *Config
	load   Load
	stage  *Prospect
	number int
	start  time.Time
	state  *State
}

// search returns the first time from a least one on at which a canary with so many times the errors has a
// verdict; 0 if there is none.
func (f *forecast) search(factor float64, least time.Duration, verdict Verdict) time.Duration {
	first := max(forecastStep, (least + forecastStep - 1).Truncate(forecastStep))
	for after := first; after <= ForecastHorizon; after += max(forecastStep, (after / forecastFineness).Truncate(forecastStep)) {
		state := f.state.Clone()
		f.count(state, factor, after)
		got := Judge(state, f.config, &Facts{
			Now: f.start.Add(after), HealthThreshold: f.stage.HealthThreshold, Minimum: f.stage.Minimum, Measured: after, SinceStep: after,
			Alone: f.stage.Share >= 1,
		})
		if got.Verdict == verdict {
			return after
		}
	}
	return 0
}

// count adds the expected counts of a time to a state.
func (f *forecast) count(s *State, factor float64, lasts time.Duration) {
	n := positive(f.load.RequestsPerMinute) * lasts.Minutes()
	share := min(positive(f.stage.Share), 1)
	control := 1 - share
	if of := positive(f.stage.Control); of > 0 {
		control = min(of, control)
	}
	number := uint64(2*f.number - 1) //nolint:gosec // at least 1
	m := traffic.Measurement{Cells: []traffic.Cell{
		f.cell(f.config.Canary, number, n*share, factor), f.cell(f.config.Control, number+1, n*control, 1),
	}}
	s.Count(f.config, &m)
}

// positive returns a number that is above 0; 0 for another one, and for no number.
func positive(n float64) float64 {
	if !(n > 0) {
		return 0
	}
	return n
}

// cell of all proxies. Proxies with the same load vary no more than independent failures do.
func (f *forecast) cell(variation string, number uint64, expected, factor float64) traffic.Cell {
	over := min(math.Round(expected), maxOver)
	failed := math.Round(over * min(positive(f.load.ErrorRate)*factor, 1))
	return traffic.Cell{
		Part: "forecast", Position: traffic.Position{Epoch: 1, Cell: number}, Variation: variation, Sequence: 1, Start: f.start, From: f.start,
		Over: uint64(over), Failed: uint64(failed),
		Spread: traffic.Spread{
			Proxies: forecastProxies, N: uint64(over), X: uint64(failed),
			NN: over * over / forecastProxies, XN: over * failed / forecastProxies, XX: failed * failed / forecastProxies,
		},
	}
}
