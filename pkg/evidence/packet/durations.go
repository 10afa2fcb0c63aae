// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Taken is the time between the grant of a step and its end. A step that was never granted has
// no beginning, and one that goes on has no end.
type Taken struct{ From, To time.Time }

// Durations say how long the targets of a plan took. A target that never began counts in
// neither; without any target that began both are absent.
type Durations struct {
	// Total is the sum over the targets; targets of one batch are worked on at the same time.
	Total *metav1.Duration `json:"totalDuration,omitempty"`
	// Average is the mean of the targets.
	Average *metav1.Duration `json:"averageTargetDuration,omitempty"`
}

// Measure sums up what the targets took.
func Measure(targets []Taken) Durations {
	var total time.Duration
	counted := 0
	for _, t := range targets {
		if d, ok := between(t.From, t.To); ok {
			total += d
			counted++
		}
	}
	if counted == 0 {
		return Durations{}
	}
	return Durations{
		Total:   &metav1.Duration{Duration: total},
		Average: &metav1.Duration{Duration: (total / time.Duration(counted)).Round(time.Millisecond)},
	}
}

// between returns the time from one moment to another; false where either is not known.
func between(from, to time.Time) (time.Duration, bool) {
	if from.IsZero() || to.IsZero() {
		return 0, false
	}
	return max(0, to.Sub(from)), true
}
