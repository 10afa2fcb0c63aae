// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var epoch = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func step(n int) Step {
	return Step{Namespace: "shop", PlanName: fmt.Sprintf("plan-%d", n), PlanUID: fmt.Sprintf("uid-%d", n)}
}

func request(n int, policy, target string) Request {
	return Request{Step: step(n), PolicyUID: policy, TargetUID: target}
}

func rules(change func(*Rules)) Rules {
	r := Rules{Policy: Limits{
		Caps:     Caps{Concurrent: new(int32(2)), PerHour: new(int32(3)), PerDay: new(int32(5))},
		Cooldown: 5 * time.Minute, FailureThreshold: 2, OpenDuration: 30 * time.Minute,
	}}
	if change != nil {
		change(&r)
	}
	return r
}

// play runs a story on a new ledger: "reserve 1 p web", "succeed 1", "fail 1",
// "release 1", each at so many minutes after the epoch.
type act struct {
	minute int
	do     string
	n      int
}

func play(t *testing.T, r Rules, story []act) *Status {
	t.Helper()
	first := Begin(epoch, true)
	s := &first
	for _, a := range story {
		now := epoch.Add(time.Duration(a.minute) * time.Minute)
		switch a.do {
		case "reserve":
			next, verdict := Reserve(s, request(a.n, "p", fmt.Sprint("t", a.n)), r, now)
			if !verdict.Granted {
				t.Fatalf("at minute %d step %d is refused: %+v", a.minute, a.n, verdict.Refused)
			}
			s = next
		case "succeed":
			s, _ = Settle(s, step(a.n), v1alpha1.LedgerSucceeded, now)
		case "fail":
			s, _ = Settle(s, step(a.n), v1alpha1.LedgerFailed, now)
		case "stop":
			s, _ = Settle(s, step(a.n), v1alpha1.LedgerStopped, now)
		case "end oddly":
			s, _ = Settle(s, step(a.n), "Odd", now)
		case "release":
			s, _ = Release(s, step(a.n), 0)
		default:
			t.Fatalf("nobody can %q", a.do)
		}
	}
	return s
}

func noHourlyLimit(r *Rules) { r.Policy.PerHour = nil }

// overlapping is a story in which step 2 is granted before the breaker opens in
// minute 7, and has not ended when step 4 tries the open breaker in minute 37.
func overlapping(then ...act) []act {
	story := []act{{0, "reserve", 1}, {0, "reserve", 2}, {1, "fail", 1}, {6, "reserve", 3}, {7, "fail", 3}, {37, "reserve", 4}}
	return append(story, then...)
}

func minute(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

func TestReserve(t *testing.T) {
	one := []act{{0, "reserve", 1}}
	failures := []act{{0, "reserve", 1}, {1, "fail", 1}, {6, "reserve", 2}, {7, "fail", 2}}
	tests := map[string]struct {
		rules  func(*Rules)
		story  []act
		minute int
		as     Request
		closed GateName
		until  time.Time
	}{
		"the first step is granted":                         {as: request(9, "p", "t9")},
		"a second one at once is granted":                   {story: one, as: request(9, "p", "t9")},
		"more at once than allowed are not":                 {story: []act{{0, "reserve", 1}, {0, "reserve", 2}}, as: request(9, "p", "t9"), closed: GateConcurrent},
		"another policy has limits of its own":              {story: []act{{0, "reserve", 1}, {0, "reserve", 2}}, as: request(9, "q", "t9")},
		"one that wrote nothing leaves its place":           {story: []act{{0, "reserve", 1}, {0, "reserve", 2}, {0, "release", 2}}, as: request(9, "p", "t9")},
		"nothing else writes a target meanwhile":            {story: one, as: request(9, "q", "t1"), closed: GateTarget},
		"nor right after":                                   {story: []act{{0, "reserve", 1}, {2, "succeed", 1}}, minute: 3, as: request(9, "q", "t1"), closed: GateTarget, until: minute(7)},
		"the policy waits after each of its steps":          {story: []act{{0, "reserve", 1}, {2, "succeed", 1}}, minute: 6, as: request(9, "p", "t9"), closed: GateCooldown, until: minute(7)},
		"another policy does not wait for it":               {story: []act{{0, "reserve", 1}, {2, "succeed", 1}}, minute: 3, as: request(9, "q", "t9")},
		"and goes on when the wait is over":                 {story: []act{{0, "reserve", 1}, {2, "succeed", 1}}, minute: 7, as: request(9, "p", "t9")},
		"without a cooldown it goes on within the second":   {rules: func(r *Rules) { r.Policy.Cooldown = 0 }, story: []act{{0, "reserve", 1}, {2, "succeed", 1}}, minute: 1, as: request(9, "p", "t9")},
		"and with the same target":                          {rules: func(r *Rules) { r.Policy.Cooldown = 0 }, story: []act{{0, "reserve", 1}, {2, "succeed", 1}}, minute: 1, as: request(9, "p", "t1")},
		"no more in an hour than allowed":                   {story: []act{{0, "reserve", 1}, {1, "succeed", 1}, {10, "reserve", 2}, {11, "succeed", 2}, {20, "reserve", 3}, {21, "succeed", 3}}, minute: 30, as: request(9, "p", "t9"), closed: GateHour, until: minute(61)},
		"an hour after the first of them has ended one may": {story: []act{{0, "reserve", 1}, {1, "succeed", 1}, {10, "reserve", 2}, {11, "succeed", 2}, {20, "reserve", 3}, {21, "succeed", 3}}, minute: 61, as: request(9, "p", "t9")},
		"no more in a day than allowed":                     {rules: func(r *Rules) { r.Policy.PerDay = new(int32(1)) }, story: []act{{0, "reserve", 1}, {1, "succeed", 1}}, minute: 600, as: request(9, "p", "t9"), closed: GateDay, until: minute(24*60 + 1)},
		"a limit of 0 allows nothing":                       {rules: func(r *Rules) { r.Policy.PerHour = new(int32(0)) }, as: request(9, "p", "t9"), closed: GateHour},
		"without a limit there is none":                     {rules: func(r *Rules) { r.Policy.Caps = Caps{} }, story: []act{{0, "reserve", 1}, {0, "reserve", 2}, {0, "reserve", 3}, {0, "reserve", 4}}, as: request(9, "p", "t9")},
		"what is for all is counted over all policies":      {rules: func(r *Rules) { r.All.Concurrent = new(int32(1)) }, story: one, as: request(9, "q", "t9"), closed: GateAllConcurrent},
		"so is the hour":                                    {rules: func(r *Rules) { r.All.PerHour = new(int32(1)) }, story: []act{{0, "reserve", 1}, {1, "succeed", 1}}, minute: 10, as: request(9, "q", "t9"), closed: GateAllHour, until: minute(61)},
		"so is the day":                                     {rules: func(r *Rules) { r.All.PerDay = new(int32(1)) }, story: []act{{0, "reserve", 1}, {1, "succeed", 1}}, minute: 100, as: request(9, "q", "t9"), closed: GateAllDay, until: minute(24*60 + 1)},
		"one failure leaves the breaker closed":             {story: failures[:2], minute: 6, as: request(9, "p", "t9")},
		"a second one in a row opens it":                    {story: failures, minute: 20, as: request(9, "p", "t9"), closed: GateBreaker, until: minute(37)},
		"a success between the two does not":                {rules: noHourlyLimit, story: []act{{0, "reserve", 1}, {1, "fail", 1}, {6, "reserve", 2}, {7, "succeed", 2}, {12, "reserve", 3}, {13, "fail", 3}}, minute: 18, as: request(9, "p", "t9")},
		"an open breaker is one policy's":                   {story: failures, minute: 20, as: request(9, "q", "t9")},
		"when it was open long enough one may try":          {story: failures, minute: 37, as: request(9, "p", "t9")},
		"and no other while that one tries":                 {story: append(failures[:4:4], act{37, "reserve", 3}), minute: 43, as: request(9, "p", "t9"), closed: GateBreaker},
		"another tries when that one wrote nothing":         {story: append(failures[:4:4], act{37, "reserve", 3}, act{38, "release", 3}), minute: 43, as: request(9, "p", "t9")},
		"one that does well closes it":                      {rules: noHourlyLimit, story: append(failures[:4:4], act{37, "reserve", 3}, act{38, "succeed", 3}), minute: 43, as: request(9, "p", "t9")},
		"one that fails opens it again":                     {rules: noHourlyLimit, story: append(failures[:4:4], act{37, "reserve", 3}, act{38, "fail", 3}), minute: 60, as: request(9, "p", "t9"), closed: GateBreaker, until: minute(68)},
		"a late success of before does not close it":        {story: []act{{0, "reserve", 1}, {0, "reserve", 2}, {1, "fail", 1}, {6, "reserve", 3}, {7, "fail", 3}, {8, "succeed", 2}}, minute: 14, as: request(9, "p", "t9"), closed: GateBreaker, until: minute(37)},
		"nor does one that comes while another tries":       {rules: noHourlyLimit, story: overlapping(act{38, "succeed", 2}), minute: 44, as: request(9, "p", "t9"), closed: GateBreaker},
		"the one that tries closes it after such a success": {rules: noHourlyLimit, story: overlapping(act{38, "succeed", 2}, act{39, "succeed", 4}), minute: 45, as: request(9, "p", "t9")},
		"a late failure while another tries opens it again": {rules: noHourlyLimit, story: overlapping(act{38, "fail", 2}), minute: 44, as: request(9, "p", "t9"), closed: GateBreaker, until: minute(68)},
		"a late release leaves the one that tries its turn": {rules: noHourlyLimit, story: overlapping(act{38, "release", 2}), minute: 44, as: request(9, "p", "t9"), closed: GateBreaker},
		"a late failure does not keep an open breaker open": {rules: noHourlyLimit, story: append(overlapping()[:5:5], act{20, "fail", 2}), minute: 37, as: request(9, "p", "t9")},
		"of two cooldowns the later one counts":             {rules: func(r *Rules) { r.Policy.PerHour, r.Policy.Concurrent = nil, nil }, story: []act{{0, "reserve", 1}, {0, "reserve", 2}, {4, "succeed", 1}, {2, "succeed", 2}}, minute: 5, as: request(9, "p", "t9"), closed: GateCooldown, until: minute(9)},
		"whichever ended first":                             {rules: func(r *Rules) { r.Policy.PerHour, r.Policy.Concurrent = nil, nil }, story: []act{{0, "reserve", 1}, {0, "reserve", 2}, {2, "succeed", 1}, {4, "succeed", 2}}, minute: 5, as: request(9, "p", "t9"), closed: GateCooldown, until: minute(9)},
		"the hour is over when the first to end is so":      {story: []act{{0, "reserve", 1}, {0, "reserve", 2}, {3, "succeed", 2}, {9, "reserve", 3}, {11, "succeed", 3}, {20, "succeed", 1}}, minute: 30, as: request(9, "p", "t9"), closed: GateHour, until: minute(63)},
		"an outcome that nobody knows counts as a failure":  {story: []act{{0, "reserve", 1}, {1, "end oddly", 1}, {6, "reserve", 2}, {7, "end oddly", 2}}, minute: 20, as: request(9, "p", "t9"), closed: GateBreaker, until: minute(37)},
		// D17 of the review of remediation: a person who canceled healthy plans opened the breaker for everybody.
		"what a cancellation ended opens no breaker":       {rules: noHourlyLimit, story: []act{{0, "reserve", 1}, {1, "stop", 1}, {6, "reserve", 2}, {7, "stop", 2}}, minute: 20, as: request(9, "p", "t9")},
		"and is no success between two failures":           {rules: noHourlyLimit, story: []act{{0, "reserve", 1}, {1, "fail", 1}, {6, "reserve", 2}, {7, "stop", 2}, {12, "reserve", 3}, {13, "fail", 3}}, minute: 18, as: request(9, "p", "t9"), closed: GateBreaker, until: minute(43)},
		"and counts as a write of the hour":                {rules: func(r *Rules) { r.Policy.PerHour = new(int32(1)) }, story: []act{{0, "reserve", 1}, {1, "stop", 1}}, minute: 10, as: request(9, "p", "t9"), closed: GateHour, until: minute(61)},
		"another tries when a cancellation ended that one": {rules: noHourlyLimit, story: append(failures[:4:4], act{37, "reserve", 3}, act{38, "stop", 3}), minute: 43, as: request(9, "p", "t9")},
		"and the next failure opens it again":              {rules: noHourlyLimit, story: append(failures[:4:4], act{37, "reserve", 3}, act{38, "stop", 3}, act{43, "reserve", 4}, act{44, "fail", 4}), minute: 60, as: request(9, "p", "t9"), closed: GateBreaker, until: minute(74)},
		"without a threshold no failure opens a breaker":   {rules: func(r *Rules) { r.Policy.PerHour, r.Policy.FailureThreshold = nil, 0 }, story: failures, minute: 20, as: request(9, "p", "t9")},
		"a clock set back forgets nothing":                 {rules: func(r *Rules) { r.Policy.PerHour = new(int32(1)) }, story: []act{{0, "reserve", 1}, {1, "succeed", 1}}, minute: -600, as: request(9, "q", "t1"), closed: GateTarget, until: minute(6)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := rules(test.rules)
			s := play(t, r, test.story)
			before := s.DeepCopy()
			next, verdict := Reserve(s, test.as, r, minute(test.minute))
			if diff := cmp.Diff(before, s); diff != "" {
				t.Errorf("what was given changed (-before +after):\n%s", diff)
			}
			if got := verdict.Refused.Name; got != test.closed || verdict.Granted != (test.closed == "") || !verdict.Refused.Until.Equal(test.until) {
				t.Fatalf("granted %t, closed %q until %s (%s); want closed %q until %s", verdict.Granted, got, verdict.Refused.Until, verdict.Refused.Message, test.closed, test.until)
			}
			if moved := next.Sequence != s.Sequence; moved != verdict.Granted {
				t.Errorf("the sequence goes from %d to %d", s.Sequence, next.Sequence)
			}
		})
	}
}

func TestALedgerThatDoesNotKnowItsPastGrantsNothing(t *testing.T) {
	young := Begin(epoch, false)
	for name, test := range map[string]struct {
		state   Status
		at      time.Time
		granted bool
	}{
		"one that was never written": {state: Status{}, at: epoch},
		"a new one":                  {state: young, at: epoch},
		"until a day has passed":     {state: young, at: epoch.Add(day - time.Second)},
		"then it does":               {state: young, at: epoch.Add(day), granted: true},
		"the first of all does":      {state: Begin(epoch, true), at: epoch, granted: true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, verdict := Reserve(&test.state, request(1, "p", "t"), rules(nil), test.at); verdict.Granted != test.granted {
				t.Errorf("granted %t: %+v", verdict.Granted, verdict.Refused)
			}
		})
	}
	t.Run("unless a person says so", func(t *testing.T) {
		trusted, changed := Trust(&young)
		if _, verdict := Reserve(trusted, request(1, "p", "t"), rules(nil), epoch); !changed || !verdict.Granted {
			t.Errorf("changed %t: %+v", changed, verdict.Refused)
		}
		if _, again := Trust(trusted); again {
			t.Error("it changes again")
		}
	})
}

func TestWhatIsRepeatedAfterACrashChangesNothing(t *testing.T) {
	r := rules(nil)
	s := play(t, r, []act{{0, "reserve", 1}})
	again, verdict := Reserve(s, request(1, "p", "t1"), r, minute(1))
	again.Sequence = s.Sequence // a write, so that what was sent before it is not stored any more
	if diff := cmp.Diff(s, again); !verdict.Granted || verdict.Entry == nil || diff != "" {
		t.Errorf("reserving again: %+v (-before +after):\n%s", verdict, diff)
	}
	settled, changed := Settle(s, step(1), v1alpha1.LedgerFailed, minute(2))
	if _, twice := Settle(settled, step(1), v1alpha1.LedgerFailed, minute(3)); !changed || twice {
		t.Errorf("settling changes %t, and again %t", changed, twice)
	}
	if _, released := Release(settled, step(1), 0); released {
		t.Error("what has ended is taken back")
	}
	if _, verdict := Reserve(settled, request(1, "p", "t1"), r, minute(3)); verdict.Granted || verdict.Entry == nil || verdict.Entry.Outcome != v1alpha1.LedgerFailed {
		t.Errorf("a step that has ended: %+v", verdict)
	}
	for name, forget := range map[string]func() bool{
		"settling an unknown step":  func() bool { _, c := Settle(s, step(7), v1alpha1.LedgerFailed, epoch); return c },
		"releasing an unknown step": func() bool { _, c := Release(s, step(7), 0); return c },
	} {
		if forget() {
			t.Errorf("%s changes something", name)
		}
	}
}

// The executor before may have decided to take a place back, and be slow to say so.
func TestAnEarlierExecutorCannotTakeBackWhatWasGrantedAgain(t *testing.T) {
	in := func(epoch int64) Request { r := request(1, "p", "t1"); r.Epoch = epoch; return r }
	first := Begin(epoch, true)
	granted, _ := Reserve(&first, in(1), rules(nil), epoch)
	again, verdict := Reserve(granted, in(2), rules(nil), epoch)
	if !verdict.Granted || again.Sequence != granted.Sequence+1 || Find(again, step(1)).Epoch != 2 {
		t.Fatalf("granted again: %+v, %+v", verdict, again)
	}
	if _, verdict := Reserve(again, in(1), rules(nil), epoch); !verdict.Granted {
		t.Errorf("asked once more by the executor before: %+v", verdict)
	}
	tests := map[string]struct {
		epoch int64
		taken bool
	}{
		"by the executor before":       {1, false},
		"by the one that has the plan": {2, true},
		"by one that came later":       {3, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if next, taken := Release(again, step(1), test.epoch); taken != test.taken || (Find(next, step(1)) == nil) != test.taken {
				t.Errorf("taken back: %t, want %t", taken, test.taken)
			}
		})
	}
}

func TestAPlanMadeAgainUnderItsNameIsAnother(t *testing.T) {
	r := rules(nil)
	s := play(t, r, []act{{0, "reserve", 1}})
	other := request(1, "p", "t9")
	other.Step.PlanUID = "another"
	if _, verdict := Reserve(s, other, r, epoch); verdict.Entry != nil || !verdict.Granted {
		t.Errorf("got %+v", verdict)
	}
}

func TestAFullLedgerRefuses(t *testing.T) {
	s := Begin(epoch, true)
	for i := range maxEntries {
		s.Entries = append(s.Entries, v1alpha1.LedgerEntry{StepReference: step(i), PolicyUID: "q", TargetUID: fmt.Sprint(i)})
	}
	if _, verdict := Reserve(&s, request(-1, "p", "t"), Rules{}, epoch); verdict.Refused.Name != GateRoom {
		t.Errorf("with %d entries: %+v", len(s.Entries), verdict)
	}
	s.Entries = nil
	for i := range maxBreakers {
		s.Breakers = append(s.Breakers, v1alpha1.LedgerBreaker{PolicyUID: fmt.Sprint(i), State: v1alpha1.BreakerOpen})
	}
	if _, verdict := Reserve(&s, request(-1, "p", "t"), rules(nil), epoch); verdict.Refused.Name != GateRoom {
		t.Errorf("with %d breakers: %+v", len(s.Breakers), verdict)
	}
	if _, verdict := Reserve(&s, request(-1, "7", "t"), rules(nil), epoch); verdict.Refused.Name == GateRoom {
		t.Errorf("a policy that has a breaker needs room for none: %+v", verdict)
	}
	if _, verdict := Reserve(&s, request(-1, "p", "t"), Rules{}, epoch); !verdict.Granted {
		t.Errorf("without a threshold no breaker needs room: %+v", verdict)
	}
}

func TestEntriesAreForgottenWhenNoLimitNeedsThem(t *testing.T) {
	r := rules(nil)
	s := play(t, r, []act{{0, "reserve", 1}, {1, "fail", 1}, {10, "reserve", 2}, {11, "succeed", 2}, {24*60 + 11, "reserve", 3}})
	if len(s.Entries) != 1 || s.Entries[0].PlanUID != "uid-3" {
		t.Errorf("left are %+v", s.Entries)
	}
	if len(s.Breakers) != 0 {
		t.Errorf("left are %+v", s.Breakers)
	}
}

func TestAnOutcomeThatNobodyKnowsIsStoredAsAFailure(t *testing.T) {
	s := play(t, rules(nil), []act{{0, "reserve", 1}, {1, "end oddly", 1}})
	if got := s.Entries[0].Outcome; got != v1alpha1.LedgerFailed {
		t.Errorf("the outcome is %q", got)
	}
}

// What a gate says of itself is shown to people, so it names the period that counts.
func TestGatesNameTheirPeriod(t *testing.T) {
	s := Begin(epoch, true)
	got := map[GateName]string{}
	for _, g := range Gates(&s, request(1, "p", "t"), rules(nil), epoch) {
		got[g.Name] = g.Message
	}
	want := map[GateName]string{
		GateHour: "0 of 3 in the last hour", GateDay: "0 of 5 in the last 24 hours",
		GateAllHour: "0 in the last hour, no limit", GateAllDay: "0 in the last 24 hours, no limit",
	}
	for name, message := range want {
		if got[name] != message {
			t.Errorf("%s says %q, want %q", name, got[name], message)
		}
	}
}

func TestStoredTimesAreNeverEarlier(t *testing.T) {
	for _, d := range []time.Duration{0, 1, time.Millisecond, time.Second - 1} {
		if got := stored(epoch.Add(d)); got.Time.Before(epoch.Add(d)) || got.Sub(epoch) > time.Second || got.Nanosecond() != 0 {
			t.Errorf("%s becomes %s", d, got.Sub(epoch))
		}
	}
}
