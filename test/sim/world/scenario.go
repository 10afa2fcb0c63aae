// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// scenario is what is to be done in a world.
type scenario struct {
	action  v1alpha1.RemediationAction
	kind    *kind
	batches [][]int32
	gone    bool
	// second says what another plan of the same policy does: nothing, something
	// else, or the same.
	second string
	limits v1alpha1.RemediationSafety
	// hours at which the policy may act; nil is always.
	hours *hours
	// late is how long after midnight everything begins.
	late time.Duration
	// deadline after which no step begins, from the beginning.
	deadline time.Duration
	redis    redis
	// ahead is by how much the clocks of the two executors are wrong.
	ahead [2]time.Duration
	// meddlers are who else takes part.
	meddlers []disturbance
	chances  schedule.Chances
	// messages until everything is calm.
	messages int
	// still is how often a watch stands still: once in so many writes.
	still int
	trials
	// aims name the cases that the world is about.
	aims []string
}

// pick draws one of some.
func pick[T any](rng *rand.Rand, some ...T) T { return some[rng.IntN(len(some))] }

func draw(rng *rand.Rand) scenario {
	c := scenario{
		action:  pick(rng, v1alpha1.ActionReconcile, v1alpha1.ActionReconcile, v1alpha1.ActionReconcile, v1alpha1.ActionRollback, v1alpha1.ActionRestart, v1alpha1.ActionScale),
		kind:    &deployments,
		batches: pick(rng, [][]int32{{0}, {1}}, [][]int32{{0}, {1}}, [][]int32{{0, 1}}, [][]int32{{0}}),
		second:  pick(rng, "", "", "other", "same"),
		still:   pick(rng, 10, 25, 100),
	}
	if (c.action == v1alpha1.ActionReconcile || c.action == v1alpha1.ActionRollback) && rng.IntN(4) == 0 {
		c.kind = &services
	}
	c.gone = c.action == v1alpha1.ActionReconcile && rng.IntN(5) == 0
	c.limits = v1alpha1.RemediationSafety{
		MaxConcurrent: pick[int32](rng, 1, 1, 2), MaxPerHour: 10, MaxPerDay: 20, MaxTargets: 10,
		MaxTargetPercent: 25, MinHealthyPercent: 75,
		Cooldown: &metav1.Duration{Duration: pick(rng, 0, 0, time.Minute)},
		CircuitBreaker: v1alpha1.CircuitBreakerSettings{
			FailureThreshold: pick[int32](rng, 1, 2, 3), OpenDuration: &metav1.Duration{Duration: pick(rng, time.Minute, 5*time.Minute)},
		},
	}
	c.redis = pick(rng, absent, flushed, liar)
	c.ahead = [2]time.Duration{pick(rng, 0, 0, 4*time.Second, -4*time.Second, time.Hour, -time.Hour), pick(rng, 0, 0, 2*time.Second, -3*time.Second)}
	c.deadline = 4 * time.Hour
	switch {
	case rng.IntN(4) == 0:
		c.keepHours(rng)
	case rng.IntN(20) == 0: // a run that waits an hour has thousands of messages
		c.limits.MaxPerHour = pick[int32](rng, 1, 2)
	}
	c.disturb(rng)
	return c
}

// keepHours gives the policy hours. Half of all runs begin just before they end.
func (c *scenario) keepHours(rng *rand.Rand) {
	c.hours = drawHours(rng)
	c.deadline = c.hours.ends + 2*time.Minute
	c.late = time.Duration(rng.Int64N(int64(c.hours.again)))
	if rng.IntN(2) == 0 {
		c.late = c.hours.closes - time.Duration(rng.Int64N(int64(20*time.Second)))
	}
}

func (c *scenario) disturb(rng *rand.Rand) {
	for _, d := range disturbances() {
		if rng.IntN(4) == 0 {
			c.meddlers = append(c.meddlers, d)
		}
	}
	for _, d := range rare() {
		if rng.IntN(40) == 0 {
			c.meddlers = append(c.meddlers, d)
			c.deadline = min(c.deadline, 20*time.Minute) // a ledger that is made anew grants nothing for a day
		}
	}
	level := pick(rng, 0, 5, 10, 20)
	chance := func() int { return rng.IntN(level + 1) }
	c.chances = schedule.Chances{
		Lost: chance(), Unanswered: chance(), Late: chance(), Doubled: chance(), Busy: chance(), Crash: chance(), Sleep: chance() / 2, Critical: pick(rng, 1, 10, 20),
	}
	c.messages = 50 + rng.IntN(250)
}

// repeatRefused has requests arrive once more that were refused, and writes
// refused.
func (c *scenario) repeatRefused() {
	c.meddlers = append(c.meddlers, disturber("forbidder", "root", (*person).forbids), disturber("second-forbidder", "root", (*person).forbids))
	c.chances.Refused, c.chances.Doubled, c.chances.Critical = true, 20, 20
}

// roughen makes a scenario one in which every protection is needed.
func (c *scenario) roughen() {
	c.redis, c.ahead, c.second = flushed, [2]time.Duration{}, "other"
	c.gone, c.hours, c.late, c.deadline = false, nil, 0, 4*time.Hour
	c.limits.MaxConcurrent, c.limits.MaxPerHour, c.limits.Cooldown = 1, 10, nil
	c.meddlers = disturbances()
	c.chances = schedule.Chances{Late: 15, Unanswered: 4, Crash: 4, Lost: 4, Doubled: 4, Critical: 30}
	c.messages = 500
}

// hours are two times of a day at which a policy may act, from midnight: from the
// first to the second, and from the third to the last.
type hours struct {
	opens, closes, again, ends time.Duration
	zone                       string
}

func drawHours(rng *rand.Rand) *hours {
	minutes := func(from, to int) time.Duration { return time.Duration(from+rng.IntN(to-from+1)) * time.Minute }
	h := &hours{opens: minutes(0, 1), zone: pick(rng, "UTC", "UTC", "Asia/Kolkata", "America/St_Johns")}
	h.closes = h.opens + minutes(1, 3)
	h.again = h.closes + minutes(1, 4)
	h.ends = h.again + minutes(1, 10)
	return h
}

// schedule says it as a policy does: a window that is closed in between, and
// allowed times from the first to the last.
func (h *hours) schedule(midnight time.Time) v1alpha1.RemediationSchedule {
	zone, err := time.LoadLocation(h.zone)
	if err != nil {
		panic(err)
	}
	at := func(d time.Duration) string { return midnight.Add(d).In(zone).Format("15:04") }
	return v1alpha1.RemediationSchedule{
		MaintenanceWindow: &v1alpha1.MaintenanceWindow{Start: at(h.again), End: at(h.closes), TimeZone: h.zone},
		AllowedStart:      at(h.opens), AllowedEnd: at(h.ends), Urgent: v1alpha1.Forbidden,
	}
}

func (h *hours) String() string {
	return fmt.Sprintf("it is open from %s to %s and from %s to %s", h.opens, h.closes, h.again, h.ends)
}

// open says whether it is so at a time after midnight, or was or will be within a
// tolerance.
func (h *hours) open(at, tolerance time.Duration) bool {
	from, to := at-tolerance, at+tolerance
	return to >= h.opens && from < h.closes || to >= h.again && from < h.ends
}
