// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"testing"
	"time"
)

func TestTheWaitBetweenPlansGrowsUpToItsBound(t *testing.T) {
	for plans, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 10: 512 * time.Second, 11: 10 * time.Minute, 1000: 10 * time.Minute,
	} {
		if got := RetryDelay(plans); got != want {
			t.Errorf("after %d plans the wait is %s, want %s", plans, got, want)
		}
	}
}

// D1 of the review of remediation: a policy made 132 plans a minute.
func TestAPolicyMakesABoundedNumberOfPlansAMinute(t *testing.T) {
	made := func(n int, ago time.Duration) []time.Time {
		times := make([]time.Time, n)
		for i := range times {
			times[i] = epoch.Add(-ago)
		}
		return times
	}
	tests := map[string]struct {
		made  []time.Time
		drift int
		plans int
		next  time.Time
	}{
		"as many as there is room for":           {nil, 10, 10, time.Time{}},
		"no more than a minute may have":         {made(15, 20*time.Second), 10, 5, epoch.Add(40 * time.Second)},
		"none when a minute has as many":         {made(20, 20*time.Second), 2, 0, epoch.Add(40 * time.Second)},
		"none when a minute has more":            {append(made(20, 20*time.Second), made(9, 50*time.Second)...), 2, 0, epoch.Add(40 * time.Second)},
		"all again when a minute is over":        {made(30, time.Minute), 10, 10, time.Time{}},
		"plans of the future count as just made": {made(20, -time.Second), 1, 0, epoch.Add(61 * time.Second)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := input()
			in.PlansMade = test.made
			in.Scope.Selected = 1000
			for i := range test.drift {
				d := drift(fmt.Sprint("web-", i))
				d.Namespace = fmt.Sprint("shop-", i) // a plan has the targets of one namespace
				in.Drifts = append(in.Drifts, d)
			}
			out := Make(in)
			if len(out.Plans) != test.plans || !out.NextLook.Equal(test.next) {
				t.Errorf("%d plans, the next look is at %s; want %d, %s", len(out.Plans), out.NextLook, test.plans, test.next)
			}
			for _, left := range out.LeftOut {
				if left.Reason != ReasonPlanRate {
					t.Errorf("%s is left out for %s", left.Drift.Baseline, left.Reason)
				}
			}
		})
	}
}
