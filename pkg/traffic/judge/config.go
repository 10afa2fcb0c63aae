// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"time"
)

// Defaults and bounds of the judgment.
const (
	// DefaultAlpha is the probability of failing a canary that is as good as the control.
	DefaultAlpha = 0.01
	// DefaultIgnoreBelow is the error rate below which a canary never fails by its errors.
	DefaultIgnoreBelow = 0.005
	// DefaultIgnoreSlowBelow is the share of slow requests below which a canary never fails by its
	// latency. The control has a hundredth of them when the stage begins.
	DefaultIgnoreSlowBelow = 0.02
	// DefaultMargin is how much higher the canary's error rate may be, as a part of the control's.
	DefaultMargin = 0.5
	// DefaultR0 is the ratio of error rates up to which a canary counts as good as the control.
	DefaultR0 = 1.5
	// MaxR0 bounds the ratio after a cohort check: a higher one would find nothing.
	MaxR0 = 10.0
	// MaxRatio is the highest ratio on which the e-process bets.
	MaxRatio = 30.0
	// Shown is the error probability of the bounds for people: these are 95 % bounds. The bounds
	// that decide have that of [Config.AlphaOf].
	Shown = 0.05
	// UnreadyLimit is how long a canary may have too few ready pods.
	UnreadyLimit = 15 * time.Second
	// MaxRestarts bounds the restarts that [Config.AlphaOf] tells apart.
	MaxRestarts = 20
)

const (
	soonAfter = time.Minute
	blindPart = 5 // the clock stands when more than one in five proxies is missing
)

// Config of a judgment. It does not change during a measurement.
type Config struct {
	// Canary and Control name the variations. The control is the stable one, or a fresh clone of it.
	Canary, Control string
	// Alpha is the probability of failing a canary that is as good as its control, in (0, 0.5]. The
	// errors have one half of it, the latency the other half.
	Alpha float64
	// IgnoreBelow and IgnoreSlowBelow are rates in [0, 1): the canary's lower bound has to exceed them
	// for a failure by errors or by latency.
	IgnoreBelow, IgnoreSlowBelow float64
	// Margin is above 0: a ratio of at most 1 + Margin passes.
	Margin float64
	// Buckets are the upper bounds of the router's latency buckets in milliseconds, in ascending
	// order; one more bucket is above all of them.
	Buckets []float64
}

// DefaultConfig returns the defaults for two variations.
func DefaultConfig(canary, control string) Config {
	return Config{
		Canary: canary, Control: control, Alpha: DefaultAlpha,
		IgnoreBelow: DefaultIgnoreBelow, IgnoreSlowBelow: DefaultIgnoreSlowBelow, Margin: DefaultMargin,
	}
}

// Validate returns an error that names the first field out of its bounds.
func (c Config) Validate() error {
	switch {
	case c.Canary == "" || c.Control == "" || c.Canary == c.Control:
		return fmt.Errorf("reading the configuration of the judge: canary %q and control %q are not two variations", c.Canary, c.Control)
	case !(c.Alpha > 0 && c.Alpha <= 0.5): // as not a number is neither
		return fmt.Errorf("reading the configuration of the judge: alpha %v is not in (0, 0.5]", c.Alpha)
	case !(c.IgnoreBelow >= 0 && c.IgnoreBelow < 1):
		return fmt.Errorf("reading the configuration of the judge: ignoreBelow %v is not in [0, 1)", c.IgnoreBelow)
	case !(c.IgnoreSlowBelow >= 0 && c.IgnoreSlowBelow < 1):
		return fmt.Errorf("reading the configuration of the judge: ignoreSlowBelow %v is not in [0, 1)", c.IgnoreSlowBelow)
	case !(c.Margin > 0 && c.Margin <= math.MaxFloat64):
		return fmt.Errorf("reading the configuration of the judge: margin %v is not above 0", c.Margin)
	}
	return nil
}

// AlphaOf returns the error probability of one metric, errors or latency, after so many restarts of
// the measurement. It is half of Alpha at first, and each restart halves it. So all measurements of
// a run together fail a good canary with a probability of at most 2 Alpha.
func (c Config) AlphaOf(restarts int) float64 {
	return math.Ldexp(c.Alpha/2, -min(max(restarts, 0), MaxRestarts))
}

// Stage is the part of a run that is under way.
type Stage struct {
	// Number is at least 1. A state that enters another number begins the stage's sums anew.
	Number int
	// Sequences are those of the splits with the stage's weight, at most 16. Sequence 0 never counts.
	Sequences []uint64
	// LatencyFrom leaves cells that tell of an earlier time out of latency: the warmup of the pods.
	LatencyFrom time.Time
}

// Facts are the inputs that cells do not hold.
type Facts struct {
	// Now is the time of the judgment.
	Now time.Time
	// HealthThreshold is the wanted success rate of the stage in hundredths of a percent, 0 to 10,000.
	HealthThreshold int
	// Minimum is how long the stage has to be measured, and Measured how long its clock has run.
	Minimum, Measured time.Duration
	// SinceStep is the time since the stage's weight was confirmed.
	SinceStep time.Duration
	// Alone says that the canary has all requests, so that there is no control.
	Alone bool
	// UnreadySince is since when the canary has fewer ready endpoints than required; zero if it has
	// enough.
	UnreadySince time.Time
	// InFlight and ControlInFlight are the requests that are not over, of canary and control.
	InFlight, ControlInFlight uint64
}

// allowed is the error rate that the stage allows.
func (f Facts) allowed() float64 {
	return float64(10_000-min(max(f.HealthThreshold, 0), 10_000)) / 10_000
}
