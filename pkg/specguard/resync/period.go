// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"fmt"
	"regexp"
	"time"
)

// Bounds of a period other than 0s, which switches checks off. They are those of
// the fields resyncPeriod.
const (
	MinPeriod = time.Second
	MaxPeriod = 8760 * time.Hour
)

// Bounds of recheckInterval.
const (
	MinRecheckInterval = time.Second
	MaxRecheckInterval = 24 * time.Hour
)

// What holds when nobody says anything.
const (
	// DriftDetectionPeriod is the period of an object that asks for checks with
	// AnnotationDriftDetection, and for which nobody says how often.
	DriftDetectionPeriod = 3 * time.Hour
	// DefaultRecheckInterval is when an object that found no free slot is looked
	// at again.
	DefaultRecheckInterval = 5 * time.Minute
)

// periodForm is the form that the fields resyncPeriod have, so that an annotation
// and a field mean the same by the same text.
var periodForm = regexp.MustCompile(`^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$`)

const (
	minPeriodBytes = 2
	maxPeriodBytes = 32
)

// ParsePeriod reads a period such as 30m, 1h30m or 0s: hours, minutes and seconds
// in this order, from [MinPeriod] to [MaxPeriod], or zero for never. The error is
// a *InputError of kind NotAPeriod or OutOfBounds; the period is then 0 and must not
// be taken for never.
func ParsePeriod(text string) (time.Duration, error) {
	period, problem := parsePeriod(text)
	if problem != nil {
		return 0, problem
	}
	return period, nil
}

func parsePeriod(text string) (time.Duration, *InputError) {
	if len(text) < minPeriodBytes || len(text) > maxPeriodBytes || !periodForm.MatchString(text) {
		return 0, notAPeriod(text)
	}
	period, err := time.ParseDuration(text)
	if err != nil {
		return 0, notAPeriod(text)
	}
	if !validPeriod(period) {
		return 0, outOfBounds(period)
	}
	return period, nil
}

func validPeriod(period time.Duration) bool {
	return period == 0 || period >= MinPeriod && period <= MaxPeriod
}

func notAPeriod(text string) *InputError {
	return &InputError{Kind: ProblemNotAPeriod, Text: quoted(text), Detail: "not a period such as 30m or 3h, or 0s for never"}
}

func outOfBounds(period time.Duration) *InputError {
	return &InputError{
		Kind: ProblemOutOfBounds, Text: period.String(),
		Detail: fmt.Sprintf("not from %s to %s, nor 0s for never", short(MinPeriod), short(MaxPeriod)),
	}
}
