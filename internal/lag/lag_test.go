// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestALagEndsAfterAWhile(t *testing.T) {
	tests := map[string]struct {
		// first is when the lag began, before the time at which it is asked for.
		first  time.Duration
		forget bool
		want   time.Duration
	}{
		"a lag that began right now":         {0, false, Most},
		"a lag that began before":            {Most / 4, false, Most * 3 / 4},
		"a lag that is over":                 {Most, false, 0},
		"a lag that is long over":            {2 * Most, false, -Most},
		"a lag that ended begins again":      {Most / 4, true, Most},
		"a lag after the clock was set back": {-time.Hour, false, Most},
		"a lag that was forgotten":           {forgotten + 1, false, Most},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var l Times
			l.Left("auto", epoch.Add(-tc.first))
			if tc.forget {
				l.Forget("auto")
			}
			if got := l.Left("auto", epoch); got != tc.want {
				t.Errorf("%s are left, want %s", got, tc.want)
			}
			if got := l.Left("other", epoch); got != Most {
				t.Errorf("%s are left to another object", got)
			}
		})
	}
}

func TestWhatIsNotLookedAtAgainIsForgotten(t *testing.T) {
	var l Times
	l.Left("deleted", epoch)
	l.Left("auto", epoch.Add(forgotten+1))
	if len(l.since) != 1 {
		t.Errorf("%d lags are remembered", len(l.since))
	}
}
