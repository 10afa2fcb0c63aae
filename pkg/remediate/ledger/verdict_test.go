// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// judged are the rules of a ledger whose breakers wait an hour for a verdict.
func judged(r *Rules) {
	r.Policy.PerHour, r.Policy.Cooldown, r.Policy.VerdictTimeout = nil, 0, time.Hour
}

func TestTheVerdictOnAProbeTurnsItsBreaker(t *testing.T) {
	// The breaker opens at minute 2 and lets step 3 try at minute 32, which ends at minute 33.
	probed := []act{{0, "reserve", 1}, {1, "fail", 1}, {1, "reserve", 2}, {2, "fail", 2}, {32, "reserve", 3}, {33, "succeed", 3}}
	tests := map[string]struct {
		verdict  effect.Verdict // of step 3, at minute 40; empty for none
		of       int
		minute   int
		state    v1alpha1.BreakerState
		until    time.Time
		failures int32
	}{
		"the end of a probe closes nothing":                   {minute: 40, state: v1alpha1.BreakerHalfOpen, until: minute(33 + 60 + 30), failures: 2},
		"an effective probe closes it":                        {verdict: effect.Effective, of: 3, minute: 40, state: v1alpha1.BreakerClosed},
		"an ineffective one opens it again":                   {verdict: effect.Ineffective, of: 3, minute: 40, state: v1alpha1.BreakerOpen, until: minute(70), failures: 3},
		"an invalidated one opens it again":                   {verdict: effect.Invalidated, of: 3, minute: 40, state: v1alpha1.BreakerOpen, until: minute(70), failures: 3},
		"an inconclusive one is no failure":                   {verdict: effect.Inconclusive, of: 3, minute: 40, state: v1alpha1.BreakerOpen, until: minute(70), failures: 2},
		"a verdict of a later version closes nothing":         {verdict: "Splendid", of: 3, minute: 40, state: v1alpha1.BreakerOpen, until: minute(70), failures: 2},
		"after an inconclusive one the next step tries":       {verdict: effect.Inconclusive, of: 3, minute: 70, state: v1alpha1.BreakerOpen, failures: 2},
		"the verdict on another step says nothing":            {verdict: effect.Effective, of: 2, minute: 40, state: v1alpha1.BreakerHalfOpen, until: minute(123), failures: 2},
		"a verdict that does not come lets the next step try": {minute: 123, state: v1alpha1.BreakerHalfOpen, failures: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := rules(judged)
			s := play(t, r, probed)
			if tc.verdict != "" {
				s, _ = ApplyVerdict(s, step(tc.of), tc.verdict, minute(40))
				if again, changed := ApplyVerdict(s, step(tc.of), tc.verdict, minute(41)); changed || again != s {
					t.Error("the same verdict counts twice")
				}
			}
			if got := Breaker(s, "p"); got != tc.state {
				t.Errorf("the breaker is %s, want %s", got, tc.state)
			}
			if got := s.Breakers[0].Failures; got != tc.failures {
				t.Errorf("%d failures, want %d", got, tc.failures)
			}
			turned := v1alpha1.BreakerState("")
			if tc.of == 3 {
				turned = tc.state
			}
			if got := TurnedBy(s, step(3)); got != turned || TurnedBy(s, step(7)) != "" {
				t.Errorf("the entry says that the breaker turned %q, want %q", got, turned)
			}
			_, verdict := Reserve(s, request(9, "p", "t9"), r, minute(tc.minute))
			if verdict.Granted != tc.until.IsZero() || !verdict.Refused.Until.Equal(tc.until) {
				t.Errorf("granted %t, refused until %s, want %s", verdict.Granted, verdict.Refused.Until, tc.until)
			}
		})
	}
}

func TestTheVerdictOnAStepEndsTheFailuresBeforeIt(t *testing.T) {
	before := []act{{0, "reserve", 1}, {1, "fail", 1}, {2, "reserve", 2}, {3, "succeed", 2}}
	tests := map[string]struct {
		story    []act
		verdict  effect.Verdict
		of       int
		failures int32
	}{
		"the end of a step ends no row":              {before, "", 2, 1},
		"an effective step ends the row":             {before, effect.Effective, 2, 0},
		"an ineffective step does not":               {before, effect.Ineffective, 2, 1},
		"nor does an inconclusive one":               {before, effect.Inconclusive, 2, 1},
		"failures since the end of the step remain":  {append(before[:4:4], act{4, "reserve", 3}, act{5, "fail", 3}), effect.Effective, 2, 1},
		"a step that failed ends no row":             {before, effect.Effective, 1, 1},
		"a step that the ledger has forgotten":       {before, effect.Effective, 7, 1},
		"a step whose end no executor has told yet":  {append(before[:2:2], act{2, "reserve", 2}), effect.Effective, 2, 1},
		"a step that a cancellation ended says none": {append(before[:3:3], act{3, "stop", 2}), effect.Effective, 2, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := play(t, rules(func(r *Rules) { judged(r); r.Policy.FailureThreshold = 5 }), tc.story)
			next, _ := ApplyVerdict(s, step(tc.of), tc.verdict, minute(40))
			if got := next.Breakers[0]; got.Failures != tc.failures || got.State != v1alpha1.BreakerClosed {
				t.Errorf("got %+v, want %d failures", got, tc.failures)
			}
		})
	}
}

func TestAFailureWhileAVerdictIsAwaitedOpensTheBreakerAgain(t *testing.T) {
	s := play(t, rules(func(r *Rules) { judged(r); r.Policy.Concurrent = nil }),
		[]act{{0, "reserve", 1}, {0, "reserve", 2}, {0, "reserve", 5}, {1, "fail", 1}, {2, "fail", 2}, {32, "reserve", 3}, {33, "succeed", 3}, {34, "fail", 5}})
	if got := Breaker(s, "p"); got != v1alpha1.BreakerOpen {
		t.Fatalf("the breaker is %s", got)
	}
	if _, changed := ApplyVerdict(s, step(3), effect.Effective, minute(40)); changed {
		t.Error("a verdict of before the failure turns the breaker")
	}
}

func TestWithoutAssessmentsAllIsAsBefore(t *testing.T) {
	s := play(t, rules(func(r *Rules) { judged(r); r.Policy.VerdictTimeout = 0 }),
		[]act{{0, "reserve", 1}, {1, "fail", 1}, {1, "reserve", 2}, {2, "fail", 2}, {32, "reserve", 3}, {33, "succeed", 3}})
	if got := Breaker(s, "p"); got != v1alpha1.BreakerClosed {
		t.Errorf("the breaker is %s", got)
	}
}

// judgedBreaker is a breaker with verdicts, written down as its definition says.
type judgedBreaker struct {
	Limits
	open     time.Time // zero while it is closed
	probe    int
	deadline time.Time // of the verdict on the probe
	failed   []time.Time
	ends     map[int]time.Time
}

func (b *judgedBreaker) lets(now time.Time) bool {
	switch {
	case b.open.IsZero():
		return true
	case !b.deadline.IsZero():
		return !now.Before(b.deadline.Add(b.OpenDuration))
	}
	return b.probe == 0 && !now.Before(b.open.Add(b.OpenDuration))
}

func (b *judgedBreaker) begins(n int) {
	if !b.open.IsZero() {
		b.probe, b.deadline = n, time.Time{}
	}
}

func (b *judgedBreaker) ends1(n int, how string, now time.Time) {
	switch how {
	case "well":
		b.ends[n] = now
		if b.probe == n {
			b.deadline = now.Add(b.VerdictTimeout)
		}
	case "badly":
		b.failed = append(b.failed, now)
		if b.probe != 0 || b.open.IsZero() && len(b.failed) >= int(b.FailureThreshold) {
			b.open, b.probe, b.deadline = now, 0, time.Time{}
		}
	default:
		if b.probe == n {
			b.probe = 0
		}
	}
}

func (b *judgedBreaker) hears(n int, verdict effect.Verdict, now time.Time) {
	switch {
	case b.probe == n && !b.deadline.IsZero():
		if b.open, b.probe, b.deadline = now, 0, (time.Time{}); verdict == effect.Effective {
			b.open, b.failed = time.Time{}, nil
		}
	case b.open.IsZero() && verdict == effect.Effective:
		b.failed = slices.DeleteFunc(b.failed, func(at time.Time) bool { return !at.After(b.ends[n]) })
	}
}

func (b *judgedBreaker) state() v1alpha1.BreakerState {
	switch {
	case b.open.IsZero():
		return v1alpha1.BreakerClosed
	case b.probe == 0:
		return v1alpha1.BreakerOpen
	}
	return v1alpha1.BreakerHalfOpen
}

// TestABreakerClosesByAnEffectiveProbeAlone draws lives of a breaker beside the naive one. It never
// closes without an effective probe, and time alone always lets a step try again.
func TestABreakerClosesByAnEffectiveProbeAlone(t *testing.T) {
	closed := 0
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{FailureThreshold: int32(rapid.IntRange(1, 2).Draw(t, "threshold")), OpenDuration: 10 * time.Minute, VerdictTimeout: 25 * time.Minute} //nolint:gosec // small
		first := Begin(epoch, true)
		s, now, naive := &first, epoch, judgedBreaker{Limits: limits, ends: map[int]time.Time{}}
		var underWay, unjudged []int
		take := func(from *[]int, what string) int {
			i := rapid.IntRange(0, len(*from)-1).Draw(t, what)
			n := (*from)[i]
			*from = slices.Delete(*from, i, i+1)
			return n
		}
		for n := range rapid.SampledFrom([]int{10, 40}).Draw(t, "acts") {
			n++
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 9, 10, 26}).Draw(t, "minutes")) * time.Minute)
			before := Breaker(s, "p")
			switch act := rapid.SampledFrom([]string{"asks", "ends", "is judged"}).Draw(t, "a step"); {
			case act == "ends" && len(underWay) > 0:
				ends, how := take(&underWay, "which"), rapid.SampledFrom([]string{"well", "badly", "not at all"}).Draw(t, "ends")
				switch how {
				case "well":
					s, _ = Settle(s, step(ends), v1alpha1.LedgerSucceeded, now)
					unjudged = append(unjudged, ends)
				case "badly":
					s, _ = Settle(s, step(ends), v1alpha1.LedgerFailed, now)
				default:
					s, _ = Release(s, step(ends), 0)
				}
				naive.ends1(ends, how, now)
				if before != v1alpha1.BreakerClosed && Breaker(s, "p") == v1alpha1.BreakerClosed {
					t.Fatalf("step %d ended %s, and the breaker closed", ends, how)
				}
			case act == "is judged" && len(unjudged) > 0:
				of, verdict := take(&unjudged, "which"), rapid.SampledFrom([]effect.Verdict{effect.Effective, effect.Ineffective, effect.Inconclusive, effect.Invalidated}).Draw(t, "verdict")
				s, _ = ApplyVerdict(s, step(of), verdict, now)
				naive.hears(of, verdict, now)
				if before != v1alpha1.BreakerClosed && Breaker(s, "p") == v1alpha1.BreakerClosed {
					closed++
				}
			default:
				next, verdict := Reserve(s, request(n, "p", fmt.Sprint(n)), Rules{Policy: limits}, now)
				if want := naive.lets(now); verdict.Granted != want {
					t.Fatalf("step %d: granted %t, want %t: %+v", n, verdict.Granted, want, s.Breakers)
				}
				if s = next; verdict.Granted {
					naive.begins(n)
					underWay = append(underWay, n)
				}
			}
			if got, want := Breaker(s, "p"), naive.state(); got != want {
				t.Fatalf("the breaker is %s, want %s", got, want)
			}
			if b := breakerOf(s, "p"); b != nil && int(b.Failures) < len(naive.failed) && b.State == v1alpha1.BreakerClosed {
				t.Fatalf("%d failures, want %d", b.Failures, len(naive.failed))
			}
		}
		for _, n := range underWay {
			s, _ = Settle(s, step(n), v1alpha1.LedgerSucceeded, now)
		}
		if _, verdict := Reserve(s, request(999, "p", "last"), Rules{Policy: limits}, now.Add(limits.VerdictTimeout+limits.OpenDuration)); !verdict.Granted {
			t.Fatalf("no step tries any more: %+v", verdict.Refused)
		}
	})
	if closed == 0 {
		t.Error("no breaker closed")
	}
}
