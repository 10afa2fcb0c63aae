// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestNextCheck(t *testing.T) {
	ago := func(d time.Duration) time.Time { return testNow.Add(-d) }
	// offset of the jitter of uid "u" after its last operation.
	after := func(last time.Time, period time.Duration) time.Time {
		return last.Add(period + jitter("u", last, period))
	}
	tests := map[string]struct {
		timing Timing
		want   Due
	}{
		"off": {
			timing: Timing{LastCheck: ago(time.Hour), Stored: ago(time.Minute)},
			want:   Due{Basis: BasisOff},
		},
		"never checked": {
			timing: Timing{Period: time.Hour},
			want:   Due{testNow, BasisNeverChecked},
		},
		"never checked, and waiting since a while": {
			timing: Timing{Period: time.Hour, Stored: ago(time.Minute)},
			want:   Due{ago(time.Minute), BasisNeverChecked},
		},
		"never checked, whatever was planned": {
			timing: Timing{Period: time.Hour, Stored: testNow.Add(time.Minute)},
			want:   Due{testNow, BasisNeverChecked},
		},
		"after the last check": {
			timing: Timing{Period: time.Hour, LastCheck: ago(time.Minute)},
			want:   Due{after(ago(time.Minute), time.Hour), BasisLastOperation},
		},
		"after a change that came later": {
			timing: Timing{Period: time.Hour, LastCheck: ago(50 * time.Minute), LastChange: ago(time.Minute)},
			want:   Due{after(ago(time.Minute), time.Hour), BasisLastOperation},
		},
		"after a correction that came later": {
			timing: Timing{Period: time.Hour, LastCheck: ago(50 * time.Minute), LastCorrection: ago(time.Minute)},
			want:   Due{after(ago(time.Minute), time.Hour), BasisLastOperation},
		},
		"a stored time that fits stands": {
			timing: Timing{Period: time.Hour, LastCheck: ago(time.Minute), Stored: testNow.Add(66 * time.Minute)},
			want:   Due{testNow.Add(66 * time.Minute), BasisLastOperation},
		},
		"a stored time in the past is due now": {
			timing: Timing{Period: time.Hour, LastCheck: ago(3 * time.Hour), Stored: ago(110 * time.Minute)},
			want:   Due{ago(110 * time.Minute), BasisLastOperation},
		},
		"a stored time from before the last operation does not count": {
			timing: Timing{Period: time.Hour, LastCheck: ago(time.Minute), Stored: ago(2 * time.Minute)},
			want:   Due{after(ago(time.Minute), time.Hour), BasisLastOperation},
		},
		"a shorter period brings the check forward": {
			timing: Timing{Period: time.Hour, LastCheck: ago(2 * time.Hour), Stored: testNow.Add(8 * time.Hour)},
			want:   Due{after(ago(2*time.Hour), time.Hour), BasisLastOperation},
		},
		"a longer period puts it off": {
			timing: Timing{Period: 10 * time.Hour, LastCheck: ago(time.Hour), Stored: testNow.Add(5 * time.Minute)},
			want:   Due{after(ago(time.Hour), 10*time.Hour), BasisLastOperation},
		},
		"the clock went back: within a period": {
			timing: Timing{Period: time.Hour, LastCheck: testNow.Add(30 * time.Hour), Stored: testNow.Add(31 * time.Hour)},
			want:   Due{testNow.Add(time.Hour - jitter("u", testNow.Add(30*time.Hour), time.Hour)), BasisClockWentBack},
		},
		"the clock went back a little: before it catches up": {
			timing: Timing{Period: time.Hour, LastCheck: testNow.Add(10 * time.Minute), Stored: testNow.Add(70 * time.Minute)},
			want:   Due{testNow.Add(5 * time.Minute), BasisClockWentBack},
		},
		"the clock went back: what is promised is kept": {
			timing: Timing{Period: time.Hour, LastCheck: testNow.Add(30 * time.Hour), Stored: testNow.Add(10 * time.Minute)},
			want:   Due{testNow.Add(10 * time.Minute), BasisClockWentBack},
		},
		"the clock went back: a check since then ends it": {
			timing: Timing{Period: time.Hour, LastChange: testNow.Add(30 * time.Hour), LastCheck: ago(time.Second), Stored: ago(time.Second)},
			want:   Due{after(ago(time.Second), time.Hour), BasisLastOperation},
		},
		"somebody asked": {
			timing: Timing{Period: time.Hour, LastCheck: ago(10 * time.Minute), Requested: ago(5 * time.Minute)},
			want:   Due{ago(5*time.Minute - time.Second), BasisRequested},
		},
		"somebody asked although checks are off": {
			timing: Timing{LastCheck: ago(10 * time.Minute), Requested: ago(5 * time.Minute)},
			want:   Due{ago(5*time.Minute - time.Second), BasisRequested},
		},
		"somebody asked and was answered": {
			timing: Timing{LastCheck: ago(10 * time.Minute), Requested: ago(11 * time.Minute)},
			want:   Due{Basis: BasisOff},
		},
		"a check in the same second is no answer": {
			timing: Timing{LastCheck: ago(10 * time.Minute), Requested: ago(10 * time.Minute)},
			want:   Due{ago(10*time.Minute - time.Second), BasisRequested},
		},
		"a check in the future is no answer": {
			timing: Timing{LastCheck: testNow.Add(time.Hour), Requested: ago(time.Minute)},
			want:   Due{ago(time.Minute - time.Second), BasisRequested},
		},
		"somebody asks for a time to come": {
			timing: Timing{Period: 10 * time.Hour, LastCheck: ago(time.Minute), Requested: testNow.Add(time.Hour)},
			want:   Due{testNow.Add(time.Hour + time.Second), BasisRequested},
		},
		"after a failure": {
			timing: Timing{Period: time.Hour, LastCheck: ago(3 * time.Hour), Failures: 2, FailedAt: ago(10 * time.Second)},
			want:   Due{ago(10 * time.Second).Add(Backoff("u", 2, ago(10*time.Second), time.Hour)), BasisBackoff},
		},
		"off, also after a failure": {
			timing: Timing{LastCheck: ago(3 * time.Hour), Failures: 2, FailedAt: ago(10 * time.Second)},
			want:   Due{Basis: BasisOff},
		},
		"after a failure of which the time is not known": {
			timing: Timing{Period: time.Hour, LastCheck: ago(3 * time.Hour), Failures: 2},
			want:   Due{after(ago(3*time.Hour), time.Hour), BasisLastOperation},
		},
		"the clock went back, and nothing is stored": {
			timing: Timing{Period: time.Hour, LastCheck: testNow.Add(3 * time.Hour)},
			want:   Due{testNow.Add(time.Hour - jitter("u", testNow.Add(3*time.Hour), time.Hour)), BasisClockWentBack},
		},
		"after a failure long ago": {
			timing: Timing{Period: time.Hour, LastCheck: ago(3 * time.Hour), Failures: 2, FailedAt: ago(time.Hour)},
			want:   Due{ago(time.Hour).Add(Backoff("u", 2, ago(time.Hour), time.Hour)), BasisBackoff},
		},
		"after a failure that a clock put into the future": {
			timing: Timing{Period: time.Hour, LastCheck: ago(3 * time.Hour), Failures: 2, FailedAt: testNow.Add(2 * time.Hour)},
			want:   Due{after(ago(3*time.Hour), time.Hour), BasisLastOperation},
		},
		"whoever asks after a failure does not wait": {
			timing: Timing{Period: time.Hour, LastCheck: ago(3 * time.Hour), Failures: 9, FailedAt: ago(10 * time.Second), Requested: ago(time.Second)},
			want:   Due{testNow, BasisRequested},
		},
		"whoever asked before the failure waits": {
			timing: Timing{LastCheck: ago(3 * time.Hour), Failures: 2, FailedAt: ago(10 * time.Second), Requested: ago(time.Minute)},
			want:   Due{ago(10 * time.Second).Add(Backoff("u", 2, ago(10*time.Second), 0)), BasisBackoff},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.timing.UID, tc.timing.Now = "u", testNow
			if diff := cmp.Diff(tc.want, NextCheck(tc.timing)); diff != "" {
				t.Errorf("due (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACheckThatNeverComesIsNotDue(t *testing.T) {
	for name, tc := range map[string]struct {
		due  Due
		want bool
	}{
		"never": {Due{}, false}, "later": {Due{At: testNow.Add(1)}, false}, "now": {Due{At: testNow}, true}, "before": {Due{At: testNow.Add(-1)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.due.By(testNow); got != tc.want {
				t.Errorf("it is due: %t", got)
			}
		})
	}
}

// past draws a time up to three days ago, or none.
func past(t *rapid.T, name string) time.Time {
	if rapid.IntRange(0, 3).Draw(t, name+" is there") == 0 {
		return time.Time{}
	}
	return testNow.Add(-time.Duration(rapid.Int64Range(0, int64(72*time.Hour)).Draw(t, name)))
}

func drawPeriod(t *rapid.T) time.Duration {
	return time.Duration(rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(1, 200_000)).Draw(t, "period")) * time.Second
}

// TestACheckIsNeverEarlyAndNeverLate: whatever is stored, it is due one to 1.2
// periods after the last operation, to the second.
func TestACheckIsNeverEarlyAndNeverLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		timing := Timing{
			UID: rapid.String().Draw(t, "uid"), Period: drawPeriod(t), Now: testNow,
			LastCheck: past(t, "check"), LastChange: past(t, "change"), LastCorrection: past(t, "correction"),
			Stored: past(t, "stored").Add(time.Duration(rapid.IntRange(0, 72*3600).Draw(t, "later")) * time.Second),
		}
		last := timing.LastCheck
		for _, at := range []time.Time{timing.LastChange, timing.LastCorrection} {
			if at.After(last) {
				last = at
			}
		}
		got := NextCheck(timing)
		if last.IsZero() {
			if !got.By(testNow) {
				t.Fatalf("never checked, and due at %s", got.At)
			}
			return
		}
		waits := got.At.Sub(last.Truncate(time.Second))
		if waits < timing.Period || waits > timing.Period+timing.Period/5 {
			t.Fatalf("due %s after the last operation, with a period of %s", waits, timing.Period)
		}
		timing.Stored = got.At
		if again := NextCheck(timing); !again.At.Equal(got.At) {
			t.Fatalf("due at %s, and once stored at %s", got.At, again.At)
		}
	})
}

// persisted is a time as it comes back from the API.
func persisted(t *testing.T, at time.Time) time.Time {
	t.Helper()
	text, err := json.Marshal(metav1.NewTime(at))
	if err != nil {
		t.Fatal(err)
	}
	var back metav1.Time
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back.Time
}

// TestARestartMakesNoHerd: what is due, and when, is the same after a restart,
// even when the stored due times were lost with it.
func TestARestartMakesNoHerd(t *testing.T) {
	const objects = 2000
	period := 3 * time.Hour
	restart := testNow.Add(90 * time.Minute)
	dueAtRestart := 0
	for i := range objects {
		// They were checked one after the other, with fractions of seconds.
		timing := Timing{UID: fmt.Sprint("uid-", i), Period: period, Now: testNow, LastCheck: testNow.Add(-time.Duration(i) * 3217 * time.Millisecond)}
		before := NextCheck(timing)
		timing.LastCheck, timing.Now = persisted(t, timing.LastCheck), restart
		if lost := NextCheck(timing); !lost.At.Equal(before.At) {
			t.Fatalf("due at %s before the restart, at %s after it", before.At, lost.At)
		}
		timing.Stored = persisted(t, before.At)
		kept := NextCheck(timing)
		if !kept.At.Equal(before.At) {
			t.Fatalf("due at %s before the restart, at %s after it", before.At, kept.At)
		}
		if kept.By(restart) {
			dueAtRestart++
		}
	}
	// Half a period passed; the oldest 107 minutes of checks reach back one period
	// at most, so only a small part can be due.
	if dueAtRestart > objects/5 {
		t.Errorf("%d of %d are due at the restart", dueAtRestart, objects)
	}
}

// TestTheClockGoesBackAndTheCheckComes walks through time, storing each due time
// as a controller does: the check comes within one period, however far the clock
// went back and however often it is looked at before.
func TestTheClockGoesBackAndTheCheckComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := drawPeriod(t)
		ahead := time.Duration(rapid.IntRange(1, 1_000_000).Draw(t, "ahead")) * time.Second
		timing := Timing{UID: "u", Period: period, Now: testNow, LastCheck: testNow.Add(ahead), LastChange: testNow.Add(ahead)}
		timing.Stored = timing.LastCheck.Add(period)
		due := NextCheck(timing)
		if due.At.After(testNow.Add(period)) {
			t.Fatalf("the clock went back, and it is due %s later", due.At.Sub(testNow))
		}
		for range rapid.IntRange(0, 20).Draw(t, "looks") {
			timing.Stored = due.At
			timing.Now = timing.Now.Add(due.At.Sub(timing.Now) / 3)
			if again := NextCheck(timing); again != due {
				t.Fatalf("due at %s, and looked at again at %s", due.At, again.At)
			}
		}
		timing.Stored, timing.Now = due.At, due.At
		if again := NextCheck(timing); !again.By(timing.Now) {
			t.Fatalf("when its time has come, it is due %s later", again.At.Sub(timing.Now))
		}
		// The check is made, and the next one is a period away.
		timing.LastCheck = timing.Now
		if next := NextCheck(timing); next.At.Before(timing.Now.Add(period)) || next.Basis != BasisLastOperation {
			t.Fatalf("after the check it is due %s later, by %s", next.At.Sub(timing.Now), next.Basis)
		}
	})
}

func TestBackoff(t *testing.T) {
	tests := map[string]struct {
		failures int
		period   time.Duration
		want     time.Duration // without jitter
	}{
		"no failure":                     {failures: 0, period: time.Hour},
		"the first":                      {failures: 1, period: time.Hour, want: 30 * time.Second},
		"the second":                     {failures: 2, period: time.Hour, want: time.Minute},
		"the fifth":                      {failures: 5, period: time.Hour, want: 8 * time.Minute},
		"the sixth":                      {failures: 6, period: time.Hour, want: 15 * time.Minute},
		"the thousandth":                 {failures: 1000, period: time.Hour, want: 15 * time.Minute},
		"more than can be counted":       {failures: 1 << 62, period: time.Hour, want: 15 * time.Minute},
		"no longer than the period":      {failures: 6, period: 10 * time.Minute, want: 10 * time.Minute},
		"a period shorter than the wait": {failures: 6, period: time.Second, want: 30 * time.Second},
		"checks on request only":         {failures: 6, want: 15 * time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, uid := range []string{"", "a", "b", "c"} {
				got := Backoff(uid, tc.failures, testNow, tc.period)
				if got < tc.want || got > tc.want+tc.want/5 {
					t.Errorf("%s, want %s to %s", got, tc.want, tc.want+tc.want/5)
				}
				if again := Backoff(uid, tc.failures, testNow, tc.period); again != got {
					t.Errorf("%s, and then %s", got, again)
				}
			}
		})
	}
}

// TestAFailingCheckIsTriedForEver: however often it fails, the next try is at most
// a quarter of an hour and its jitter away.
func TestAFailingCheckIsTriedForEver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		timing := Timing{
			UID: "u", Period: drawPeriod(t), LastCheck: testNow.Add(-1000 * time.Hour), Now: testNow,
			Failures: rapid.IntRange(1, 1<<40).Draw(t, "failures"), FailedAt: testNow,
		}
		due := NextCheck(timing)
		if waits := due.At.Sub(testNow); waits < MinBackoff || waits > MaxBackoff*6/5 || due.Basis != BasisBackoff {
			t.Fatalf("the next try is %s away, by %s", waits, due.Basis)
		}
	})
}
