// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"errors"
	"testing"
	"time"
)

func TestAWorkerOfBeforeDecidesUntilItsConnectionsHaveEnded(t *testing.T) {
	const keepaliveMin = 5 * time.Second
	now := time.Unix(1_000, 0)
	before, after := Worker{10, 1}, Worker{11, 2}
	old := map[Worker]bool{before: true}
	for name, tc := range map[string]struct {
		state   State
		left    time.Duration // ago; 0 is not known
		decided time.Duration // ago; 0 is no line
		want    error
	}{
		"it accepts":                       {State{Worker: before}, 0, 0, ErrAccepts},
		"it accepts, and has left once":    {State{Worker: before}, time.Minute, 0, ErrAccepts},
		"it is stopped":                    {State{Worker: before, Leaving: true, Stopped: true}, time.Minute, 0, ErrStopped},
		"it has just left":                 {State{Worker: before, Leaving: true}, 0, 0, ErrKept},
		"it left a second ago":             {State{Worker: before, Leaving: true}, time.Second, 0, ErrKept},
		"it left at the bound":             {State{Worker: before, Leaving: true}, keepaliveMin, 0, ErrKept},
		"it left, and is held":             {State{Worker: before, Leaving: true}, 6 * time.Second, 0, nil},
		"a line of before came since":      {State{Worker: before, Leaving: true}, 6 * time.Second, time.Second, ErrKept},
		"the line is older than the bound": {State{Worker: before, Leaving: true}, time.Minute, 6 * time.Second, nil},
		"it is one of after":               {State{Worker: after}, 0, time.Second, nil},
		"it has the PID of one of before":  {State{Worker: Worker{before.PID, 3}}, 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			since, decided := Leavers{}, time.Time{}
			if tc.left > 0 {
				since[before] = now.Add(-tc.left)
			}
			if tc.decided > 0 {
				decided = now.Add(-tc.decided)
			}
			late, _ := JudgeWorkers(now, old, []State{tc.state}, since, decided, keepaliveMin)
			if tc.want == nil && len(late) > 0 || tc.want != nil && (len(late) != 1 || !errors.Is(late[0].Why, tc.want) || late[0].PID != before.PID) {
				t.Errorf("late: %v, want %v", late, tc.want)
			}
		})
	}
}

// A worker that was stopped while it left begins to leave anew, because its timers stood still.
func TestAStopForgetsWhenAWorkerLeft(t *testing.T) {
	w := Worker{10, 1}
	old, now := map[Worker]bool{w: true}, time.Unix(1_000, 0)
	_, leavers := JudgeWorkers(now, old, []State{{Worker: w, Leaving: true, Stopped: true}}, Leavers{w: now.Add(-time.Hour)}, time.Time{}, time.Second)
	late, leavers := JudgeWorkers(now, old, []State{{Worker: w, Leaving: true}}, leavers, time.Time{}, time.Second)
	if len(late) != 1 || !leavers[w].Equal(now) {
		t.Errorf("late: %v, left at %v", late, leavers)
	}
}
