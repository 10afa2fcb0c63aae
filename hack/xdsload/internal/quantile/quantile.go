// SPDX-License-Identifier: Apache-2.0

// Package quantile says how long most of something took.
package quantile

import (
	"slices"
	"time"
)

// Summary of durations.
type Summary struct {
	Count         int
	P50, P99, Max time.Duration
}

// Of durations; those given are sorted. Each quantile is one of them: the smallest that
// at least so many of them do not exceed (the nearest rank).
func Of(durations []time.Duration) Summary {
	if len(durations) == 0 {
		return Summary{}
	}
	slices.Sort(durations)
	return Summary{
		Count: len(durations), P50: rank(durations, 50), P99: rank(durations, 99), Max: durations[len(durations)-1],
	}
}

func rank(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}
