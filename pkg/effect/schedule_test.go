// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var written = time.Date(2026, 3, 2, 14, 0, 0, 0, time.UTC)

// The windows of seeds-upstream, with their corner cases.
func TestScheduleOfAWrite(t *testing.T) {
	const m = time.Minute
	tests := map[string]struct {
		windows Windows
		// after the write
		propagated, stabilized, alerts, deadline time.Duration
		extended                                 bool
	}{
		"the defaults":                                  {Windows{0, 5 * m, 0, 30 * m}, 0, 5 * m, 5 * m, 30 * m, false},
		"alerts are asked for later":                    {Windows{0, 5 * m, 5 * m, 30 * m}, 0, 5 * m, 10 * m, 30 * m, false},
		"a write that has to arrive first":              {Windows{3 * m, 5 * m, 5 * m, 30 * m}, 3 * m, 8 * m, 13 * m, 43 * m, false},
		"a validity as long as the wait is extended":    {Windows{0, 5 * m, 5 * m, 10 * m}, 0, 5 * m, 10 * m, 20 * m, true},
		"a validity that is a second longer is not":     {Windows{0, 5 * m, 5 * m, 10*m + time.Second}, 0, 5 * m, 10 * m, 10*m + time.Second, false},
		"a shorter validity is extended":                {Windows{0, 30 * m, 0, 10 * m}, 0, 30 * m, 30 * m, 40 * m, true},
		"with a propagation nothing has to be extended": {Windows{m, 30 * m, 0, 10 * m}, m, 31 * m, 31 * m, 41 * m, false},
		"no windows at all":                             {Windows{}, 0, 0, 0, 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := Schedule{written.Add(tc.propagated), written.Add(tc.stabilized), written.Add(tc.alerts), written.Add(tc.deadline), tc.extended}
			if diff := cmp.Diff(want, tc.windows.Schedule(written)); diff != "" {
				t.Errorf("the schedule differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPhaseOfAnAssessmentThatHasNotEnded(t *testing.T) {
	s := Windows{Propagation: time.Minute, Stabilization: 5 * time.Minute, AlertDelay: time.Minute, Validity: 10 * time.Minute}.Schedule(written)
	tests := map[string]struct {
		now     time.Time
		phase   Phase
		expired bool
	}{
		"at the write":                        {written, WaitingForPropagation, false},
		"before the write, as a clock says":   {written.Add(-time.Hour), WaitingForPropagation, false},
		"when it has arrived":                 {s.Propagated, Stabilizing, false},
		"just before it is stable":            {s.Stabilized.Add(-1), Stabilizing, false},
		"the instant at which it is stable":   {s.Stabilized, Assessing, false},
		"just before the deadline":            {s.Deadline.Add(-1), Assessing, false},
		"the deadline itself":                 {s.Deadline, Assessing, true},
		"a day later, and no assessor looked": {s.Deadline.Add(24 * time.Hour), Assessing, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if phase, expired := s.PhaseAt(tc.now); phase != tc.phase || expired != tc.expired {
				t.Errorf("got %s, expired %t", phase, expired)
			}
		})
	}
}

// An expired assessment is never left stabilizing, and no instant is after the deadline.
func TestInstantsOfAScheduleAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(25*time.Hour)).Draw(t, name))
		}
		w := Windows{draw("propagation"), draw("stabilization"), draw("alerts"), draw("validity")}
		s := w.Schedule(written)
		instants := []time.Time{written, s.Propagated, s.Stabilized, s.Alerts, s.Deadline}
		for i := 1; i < len(instants); i++ {
			if instants[i].Before(instants[i-1]) {
				t.Fatalf("instant %d of %+v is before the one before it: %v", i, w, instants)
			}
		}
		if s.Deadline.Before(written.Add(w.Validity)) {
			t.Fatalf("%+v expires before its validity is over", w)
		}
	})
}

func TestUnknownPhasesHaveEnded(t *testing.T) {
	for phase, ended := range map[Phase]bool{"": false, Pending: false, WaitingForPropagation: false, Stabilizing: false, Assessing: false, Completed: true, Failed: true, "Later": true} {
		if phase.Ended() != ended {
			t.Errorf("%q has ended: %t", phase, !ended)
		}
	}
}
