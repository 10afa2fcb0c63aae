// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redisguard

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
)

// said is an answer as far as it is compared with the ledger's own.
type said struct {
	Verdict redisguard.Verdict
	Gate    ledger.GateName
	Until   string
	Reason  redisguard.Reason
}

func bySay(a redisguard.Answer) said {
	return said{a.Verdict, a.Refused.Name, until(a.Refused.Until), a.Reason}
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// byLedger is what the ledger itself says; one that knows the step has nothing
// more to ask.
func byLedger(s *ledger.Status, r ledger.Request, rules ledger.Rules, now time.Time) said {
	if ledger.Find(s, r.Step) != nil {
		return said{Verdict: redisguard.Allowed}
	}
	for _, g := range ledger.Gates(s, r, rules, now) {
		if !g.Open {
			return said{Verdict: redisguard.Refused, Gate: g.Name, Until: until(g.Until)}
		}
	}
	return said{Verdict: redisguard.Allowed}
}

func drawCap(t *rapid.T, what string) *int32 {
	if rapid.Bool().Draw(t, what+" none") {
		return nil
	}
	return new(rapid.SampledFrom([]int32{-1, 0, 1, 2, 3, 5, 8, math.MaxInt32}).Draw(t, what))
}

func drawCaps(t *rapid.T, what string) ledger.Caps {
	return ledger.Caps{Concurrent: drawCap(t, what+" at once"), PerHour: drawCap(t, what+" per hour"), PerDay: drawCap(t, what+" per day")}
}

func drawPeriod(t *rapid.T, what string) time.Duration {
	return rapid.SampledFrom([]time.Duration{
		0, 1, time.Second - 1, time.Second, 5*time.Minute - 1, 5 * time.Minute, 5*time.Minute + 1, 90 * time.Minute, 48 * time.Hour,
	}).Draw(t, what)
}

func drawRules(t *rapid.T) ledger.Rules {
	return ledger.Rules{
		Policy: ledger.Limits{
			Caps: drawCaps(t, "policy"), Cooldown: drawPeriod(t, "cooldown"), OpenDuration: drawPeriod(t, "open"),
			FailureThreshold: rapid.Int32Range(0, 3).Draw(t, "threshold"),
		},
		All: drawCaps(t, "all"),
	}
}

// uids are short ones, and some that nothing in a script must stumble over.
var uids = []string{"p", "q", "", "open/q", "ü{}/%d\n'\x00\xff"}

func drawRequest(t *rapid.T, n int) ledger.Request {
	return request(n, rapid.SampledFrom(uids).Draw(t, "policy"), rapid.SampledFrom(uids).Draw(t, "target"))
}

// drawAgo is a time at or near the edges of what limits look back to.
func drawAgo(t *rapid.T, now time.Time) metav1.Time {
	seconds := rapid.SampledFrom([]int{-30, -1, 0, 1, 299, 300, 301, 3599, 3600, 3601, 5400, 86_399, 86_400, 86_401, 172_800, 10_000_000}).Draw(t, "ago")
	return metav1.NewTime(now.Add(-time.Duration(seconds) * time.Second).Truncate(time.Second))
}

func maybe(t *rapid.T, what string, at metav1.Time) *metav1.Time {
	if rapid.Bool().Draw(t, what) {
		return &at
	}
	return nil
}

// drawStatus is any ledger, also one that no history leads to.
func drawStatus(t *rapid.T, now time.Time) *ledger.Status {
	s := &ledger.Status{Sequence: rapid.Int64Range(1, 1<<53-1).Draw(t, "sequence")}
	s.GrantStartTime = maybe(t, "new", drawAgo(t, now))
	for n := range rapid.IntRange(0, 12).Draw(t, "entries") {
		r := drawRequest(t, n)
		s.Entries = append(s.Entries, v1alpha1.LedgerEntry{
			StepReference: r.Step, PolicyUID: r.PolicyUID, TargetUID: r.TargetUID, ReservationTime: metav1.NewTime(epoch),
			CompletionTime: maybe(t, "ended", drawAgo(t, now)),
		})
	}
	for range rapid.IntRange(0, 4).Draw(t, "breakers") {
		b := v1alpha1.LedgerBreaker{
			PolicyUID:    rapid.SampledFrom(uids).Draw(t, "policy"),
			State:        rapid.SampledFrom([]v1alpha1.BreakerState{v1alpha1.BreakerClosed, v1alpha1.BreakerOpen, v1alpha1.BreakerHalfOpen, "Ajar", ""}).Draw(t, "state"),
			LastOpenTime: maybe(t, "opened", drawAgo(t, now)), VerdictDeadlineTime: maybe(t, "waits for a verdict", drawAgo(t, now)),
		}
		if rapid.Bool().Draw(t, "probing") {
			b.Probe = &ledger.Step{PlanUID: "plan-1"}
		}
		s.Breakers = append(s.Breakers, b)
	}
	return s
}

func drawNow(t *rapid.T) time.Time {
	return epoch.Add(time.Duration(rapid.SampledFrom([]int64{0, 1, 500_000_000, 999_999_999}).Draw(t, "ns")))
}

// Whatever is in a ledger, its copy says what it says: the same gate, until the
// same nanosecond.
func TestTheScriptSaysOfAnyLedgerWhatTheLedgerSays(t *testing.T) {
	s, ledgers := newStand(t), 0
	verdicts := map[said]int{}
	rapid.Check(t, func(t *rapid.T) {
		now := drawNow(t)
		status, ledgers := drawStatus(t, now), next(&ledgers)
		for n := range 12 {
			r, rules := drawRequest(t, 10+n), drawRules(t)
			got := bySay(s.Consult(t.Context(), name, ledgers, status, r, rules, now))
			if diff := cmp.Diff(byLedger(status, r, rules, now), got); diff != "" {
				t.Fatalf("request %+v, rules %+v, at %s (-ledger +copy):\n%s", r, rules, now, diff)
			}
			verdicts[said{Verdict: got.Verdict, Gate: got.Gate}]++
		}
	})
	// A comparison that never met a gate would prove nothing about it.
	for _, g := range []ledger.GateName{
		ledger.GateAge, ledger.GateBreaker, ledger.GateTarget, ledger.GateCooldown, ledger.GateConcurrent,
		ledger.GateHour, ledger.GateDay, ledger.GateAllConcurrent, ledger.GateAllHour, ledger.GateAllDay,
	} {
		if verdicts[said{Verdict: redisguard.Refused, Gate: g}] == 0 {
			t.Errorf("%s never refused", g)
		}
	}
	if verdicts[said{Verdict: redisguard.Allowed}] == 0 {
		t.Error("nothing was ever allowed")
	}
}

// next is a ledger of its own for each run.
func next(n *int) string {
	*n++
	return "uid-" + strconv.Itoa(*n)
}

// life is a ledger with its mirror, as an executor uses them.
type life struct {
	*rapid.T
	mirror *redisguard.Mirror
	uid    string
	rules  ledger.Rules
	s      *ledger.Status
	now    time.Time
	open   []ledger.Request
	next   int
}

func newLife(t *rapid.T, m *redisguard.Mirror, uid string, rules ledger.Rules) *life {
	first := ledger.Begin(epoch, rapid.Bool().Draw(t, "past known"))
	return &life{T: t, mirror: m, uid: uid, rules: rules, s: &first, now: epoch}
}

func (l *life) pass() {
	l.now = l.now.Add(time.Duration(rapid.SampledFrom([]int64{0, 1, 333, 59_999, 300_000, 1_800_001, 3_600_000, 86_400_000}).Draw(l.T, "ms")) * time.Millisecond)
}

// reserve asks the mirror, which must say what the ledger says, and then the
// ledger.
func (l *life) reserve() {
	l.next++
	r := drawRequest(l.T, rapid.IntRange(max(1, l.next-2), l.next).Draw(l.T, "step"))
	a := l.mirror.Consult(l.Context(), name, l.uid, l.s, r, l.rules, l.now)
	if diff := cmp.Diff(byLedger(l.s, r, l.rules, l.now), bySay(a)); diff != "" {
		l.Fatalf("request %+v at %s (-ledger +copy):\n%s", r, l.now, diff)
	}
	if a.Vetoed() {
		return
	}
	before := l.s
	after, verdict := ledger.Reserve(l.s, r, l.rules, l.now)
	l.s = after
	if verdict.Granted && before != after {
		l.open = append(l.open, r)
	}
	l.store()
}

func (l *life) end() {
	if len(l.open) == 0 {
		return
	}
	r := l.open[0]
	l.open = l.open[1:]
	switch rapid.SampledFrom([]string{"well", "badly", "not at all"}).Draw(l.T, "ends") {
	case "well":
		l.s, _ = ledger.Settle(l.s, r.Step, v1alpha1.LedgerSucceeded, l.now)
	case "badly":
		l.s, _ = ledger.Settle(l.s, r.Step, v1alpha1.LedgerFailed, l.now)
	default:
		l.s, _ = ledger.Release(l.s, r.Step, r.Epoch)
	}
	l.store()
}

// store puts the copy, or forgets to, as an executor that dies does.
func (l *life) store() {
	if rapid.IntRange(0, 3).Draw(l.T, "dies before it puts") == 0 {
		return
	}
	if err := l.mirror.Put(l.Context(), name, l.uid, l.s); err != nil {
		l.Fatal(err)
	}
}

func (l *life) acts() map[string]func(*rapid.T) {
	as := func(do func()) func(*rapid.T) {
		return func(t *rapid.T) { l.T = t; do() }
	}
	return map[string]func(*rapid.T){
		"time passes": as(l.pass), "a step asks": as(l.reserve), "a step asks ": as(l.reserve), "one ends": as(l.end),
	}
}

func TestTheScriptSaysThroughALedgersLifeWhatTheLedgerSays(t *testing.T) {
	s, ledgers := newStand(t), 0
	rapid.Check(t, func(t *rapid.T) {
		t.Repeat(newLife(t, s.Mirror, next(&ledgers), drawRules(t)).acts())
	})
}

// To the nanosecond: each gate that time opens, around the time at which it does.
func TestTheCopysGatesOpenWhenTheLedgersDo(t *testing.T) {
	s := newStand(t)
	const period = 90 * time.Minute
	ended := func() *ledger.Status {
		status := full(1)
		status.Entries[0].CompletionTime, status.Entries[1].CompletionTime = new(metav1.NewTime(epoch)), new(metav1.NewTime(epoch.Add(-time.Second)))
		return status
	}
	tests := map[string]struct {
		status func() *ledger.Status
		rules  ledger.Rules
		target string
		opens  time.Duration
	}{
		"age": {opens: period, status: func() *ledger.Status {
			return &ledger.Status{Sequence: 1, GrantStartTime: new(metav1.NewTime(epoch.Add(period)))}
		}},
		"breaker": {opens: period, rules: ledger.Rules{Policy: ledger.Limits{OpenDuration: period}}, status: func() *ledger.Status {
			return &ledger.Status{Sequence: 1, Breakers: []v1alpha1.LedgerBreaker{{PolicyUID: "p", State: v1alpha1.BreakerOpen, LastOpenTime: new(metav1.NewTime(epoch))}}}
		}},
		"target":                 {opens: period, rules: ledger.Rules{Policy: ledger.Limits{Cooldown: period}}, status: ended, target: "t0"},
		"cooldown":               {opens: period, rules: ledger.Rules{Policy: ledger.Limits{Cooldown: period}}, status: ended, target: "t3"},
		"a cooldown of odd size": {opens: period + 1, rules: ledger.Rules{Policy: ledger.Limits{Cooldown: period + 1}}, status: ended, target: "t3"},
		"hour, one may":          {opens: time.Hour, rules: ledger.Rules{Policy: ledger.Limits{Caps: caps(9, 1, 9)}}, status: ended},
		"hour, two may":          {opens: time.Hour - time.Second, rules: ledger.Rules{Policy: ledger.Limits{Caps: caps(9, 2, 9)}}, status: ended},
		"day, one may":           {opens: 24 * time.Hour, rules: ledger.Rules{Policy: ledger.Limits{Caps: caps(9, 9, 1)}}, status: ended},
		"hour of all":            {opens: time.Hour, rules: ledger.Rules{All: caps(9, 1, 9)}, status: ended},
		"day of all":             {opens: 24 * time.Hour, rules: ledger.Rules{All: caps(9, 9, 1)}, status: ended},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			status, r := test.status(), request(3, "p", test.target)
			for _, d := range []time.Duration{-time.Second, -time.Second + 1, -1, 0, 1, time.Second} {
				now := epoch.Add(test.opens + d)
				want := byLedger(status, r, test.rules, now)
				if open := want.Verdict == redisguard.Allowed; open != (d >= 0) {
					t.Fatalf("%s from when it should open the ledger says %+v", d, want)
				}
				if diff := cmp.Diff(want, bySay(s.Consult(t.Context(), name, t.Name(), status, r, test.rules, now))); diff != "" {
					t.Errorf("%s from when it opens (-ledger +copy):\n%s", d, diff)
				}
			}
		})
	}
}

func TestALedgerWithoutRoomIsRefusedByItsCopy(t *testing.T) {
	s := newStand(t)
	tests := map[string]struct {
		entries, breakers int
		ended             *metav1.Time
		rules             ledger.Rules
	}{
		"one entry is free":                      {entries: 1023},
		"none is":                                {entries: 1024},
		"all have ended long ago":                {entries: 1024, ended: new(metav1.NewTime(epoch.Add(-24 * time.Hour)))},
		"one breaker is free":                    {breakers: 255, rules: rules()},
		"none is, and the step may need one":     {breakers: 256, rules: rules()},
		"none is, and the policy has no breaker": {breakers: 256},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			status := &ledger.Status{Sequence: 7}
			for n := range test.entries {
				r := request(n, fmt.Sprint("policy-", n), fmt.Sprint("target-", n))
				status.Entries = append(status.Entries, v1alpha1.LedgerEntry{StepReference: r.Step, PolicyUID: r.PolicyUID, TargetUID: r.TargetUID, CompletionTime: test.ended})
			}
			for n := range test.breakers {
				status.Breakers = append(status.Breakers, v1alpha1.LedgerBreaker{PolicyUID: fmt.Sprint("other-", n), State: v1alpha1.BreakerOpen})
			}
			r := request(-1, "p", "t")
			got := bySay(s.Consult(t.Context(), name, t.Name(), status, r, test.rules, epoch))
			if diff := cmp.Diff(byLedger(status, r, test.rules, epoch), got); diff != "" {
				t.Errorf("(-ledger +copy):\n%s", diff)
			}
		})
	}
}
