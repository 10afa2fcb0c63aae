// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"slices"
	"time"
)

// The wait between two plans for one object that end without success: a second, and
// twice as long after each further plan.
const (
	firstRetry = time.Second
	lastRetry  = 10 * time.Minute
)

// RetryDelay returns how long after so many plans in a row without success the next plan
// for an object is made: an exponential backoff, at most ten minutes.
func RetryDelay(plans int) time.Duration {
	delay := firstRetry
	for range plans - 1 {
		if delay *= 2; delay >= lastRetry {
			return lastRetry
		}
	}
	return delay
}

// maxPlansPerMinute bounds the plans of one policy, whatever becomes of them: a defect
// that ends plans at once must not fill the API server.
const maxPlansPerMinute = 20

// planRate returns how many plans the policy may make now, and when the first of the last
// minute's plans no longer counts; zero when there are none.
func planRate(in *Input) (room int, next time.Time) {
	var recent []time.Time
	for _, made := range in.PlansMade {
		if made.Add(time.Minute).After(in.Now) {
			recent = append(recent, made)
		}
	}
	slices.SortFunc(recent, time.Time.Compare)
	room = maxPlansPerMinute - len(recent)
	if len(recent) > 0 {
		next = recent[max(0, -room)].Add(time.Minute)
	}
	return room, next
}

// tooManyPlans is the obstacle to a plan beyond the rate. Where next is zero, the plans of
// this very look use the rate up for a minute.
func tooManyPlans(now, next time.Time) Obstacle {
	o := obstacle(ReasonPlanRate, "the policy makes at most %d plans a minute", maxPlansPerMinute)
	if o.Until = next; next.IsZero() {
		o.Until = now.Add(time.Minute)
	}
	return o
}
