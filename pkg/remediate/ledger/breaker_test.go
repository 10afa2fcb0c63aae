// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A breaker in its idle state says the same as none, and only as long as its policy
// has no entries is it without use.
func TestOnlyIdleBreakersAreForgotten(t *testing.T) {
	s := Begin(epoch, true)
	s.Entries = []v1alpha1.LedgerEntry{{StepReference: step(1), PolicyUID: "with entries", TargetUID: "t1"}}
	s.Breakers = []v1alpha1.LedgerBreaker{
		{PolicyUID: "idle", State: v1alpha1.BreakerClosed},
		{PolicyUID: "with entries", State: v1alpha1.BreakerClosed},
		{PolicyUID: "failed once", State: v1alpha1.BreakerClosed, Failures: 1},
		{PolicyUID: "open", State: v1alpha1.BreakerOpen},
		{PolicyUID: "half open", State: v1alpha1.BreakerHalfOpen},
	}
	next, verdict := Reserve(&s, request(2, "another", "t2"), rules(nil), epoch)
	if !verdict.Granted {
		t.Fatalf("refused: %+v", verdict.Refused)
	}
	var left []string
	for _, b := range next.Breakers {
		left = append(left, b.PolicyUID)
	}
	if diff := cmp.Diff([]string{"with entries", "failed once", "open", "half open"}, left); diff != "" {
		t.Errorf("breakers left (-want +got):\n%s", diff)
	}
}

// D2 of the review of remediation: the entry of a probe that ended without the limits of
// its policy, or that was gone, left the breaker half open for ever.
func TestABreakerIsNeverHalfOpenForGood(t *testing.T) {
	r := rules(noHourlyLimit)
	probing := []act{{0, "reserve", 1}, {1, "fail", 1}, {6, "reserve", 2}, {7, "fail", 2}, {37, "reserve", 3}}
	tests := map[string]struct {
		then   func(*Status) *Status
		state  v1alpha1.BreakerState
		opens  time.Time
		probes bool
	}{
		"a probe that failed under an older version opens it": {
			then: func(s *Status) *Status {
				Find(s, step(3)).FailureThreshold = 0
				s, _ = Settle(s, step(3), v1alpha1.LedgerFailed, minute(38))
				return s
			},
			state: v1alpha1.BreakerOpen, opens: minute(68),
		},
		"a probe without an entry leaves it open since it opened": {
			then:  func(s *Status) *Status { s.Entries = nil; return s },
			state: v1alpha1.BreakerOpen, probes: true,
		},
		"a probe that has ended unseen leaves it open since it opened": {
			then:  func(s *Status) *Status { Find(s, step(3)).CompletionTime = &metav1.Time{Time: minute(38)}; return s },
			state: v1alpha1.BreakerOpen, probes: true,
		},
		"a half-open breaker without a probe is open": {
			then:  func(s *Status) *Status { s.Breakers[0].Probe = nil; return s },
			state: v1alpha1.BreakerOpen, probes: true,
		},
		"a late failure beside a probe without an entry does not open it later": {
			then: func(s *Status) *Status {
				s.Entries = []v1alpha1.LedgerEntry{{StepReference: step(5), PolicyUID: "p", TargetUID: "t5"}}
				s, _ = Settle(s, step(5), v1alpha1.LedgerFailed, minute(38))
				return s
			},
			state: v1alpha1.BreakerOpen, probes: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := test.then(play(t, r, probing))
			if got := Breaker(s, "p"); got != test.state {
				t.Errorf("the breaker is %s, want %s", got, test.state)
			}
			next, verdict := Reserve(s, request(9, "p", "t9"), r, minute(45))
			if verdict.Granted != test.probes || !verdict.Refused.Until.Equal(test.opens) {
				t.Fatalf("granted %t, refused by %+v; want granted %t, open until %s", verdict.Granted, verdict.Refused, test.probes, test.opens)
			}
			if got := Breaker(next, "p"); test.probes && (got != v1alpha1.BreakerHalfOpen || !same(*next.Breakers[0].Probe, step(9))) {
				t.Errorf("then the breaker is %s, and its probe %+v", got, next.Breakers[0].Probe)
			}
		})
	}
}

// D3 of the review of remediation: a failure that was settled while the policy could not
// be read was not counted. The entry holds the threshold under which it was granted.
func TestAFailureCountsByTheThresholdUnderWhichItsStepWasGranted(t *testing.T) {
	granted := rules(func(r *Rules) { r.Policy.FailureThreshold = 1 })
	s := play(t, granted, []act{{0, "reserve", 1}, {1, "fail", 1}})
	if got := Breaker(s, "p"); got != v1alpha1.BreakerOpen {
		t.Errorf("after one failure the breaker is %s", got)
	}
}

// A generation tells two openings of one breaker apart.
func TestEachOpeningOfABreakerHasItsGeneration(t *testing.T) {
	r := rules(noHourlyLimit)
	story := []act{{0, "reserve", 1}, {1, "fail", 1}, {6, "reserve", 2}, {7, "fail", 2}, {37, "reserve", 3}, {38, "fail", 3}}
	for n, want := range map[int]int64{2: 0, 4: 1, 5: 1, 6: 2} {
		s := play(t, r, story[:n])
		if got := s.Breakers[0].Generation; got != want {
			t.Errorf("after %v the generation is %d, want %d", story[n-1], got, want)
		}
	}
}

func TestAStateOfABreakerThatNobodyKnowsRefuses(t *testing.T) {
	for name, b := range map[string]v1alpha1.LedgerBreaker{
		"unknown state":             {PolicyUID: "p", State: "Ajar"},
		"half open without a probe": {PolicyUID: "p", State: v1alpha1.BreakerHalfOpen},
		"open without a time":       {PolicyUID: "p", State: v1alpha1.BreakerOpen},
	} {
		t.Run(name, func(t *testing.T) {
			s := Begin(epoch, true)
			s.Breakers = append(s.Breakers, b)
			if _, verdict := Reserve(&s, request(1, "p", "t"), rules(nil), epoch.Add(1000*time.Hour)); verdict.Refused.Name != GateBreaker {
				t.Errorf("got %+v", verdict)
			}
			s.Entries = []v1alpha1.LedgerEntry{{StepReference: step(2), PolicyUID: "p", TargetUID: "t2"}}
			settled, _ := Settle(&s, step(2), v1alpha1.LedgerSucceeded, epoch)
			released, _ := Release(&s, step(2), 0)
			for what, after := range map[string]*Status{"a success": settled, "a release": released} {
				if diff := cmp.Diff(s.Breakers, after.Breakers); diff != "" {
					t.Errorf("%s changes the breaker (-before +after):\n%s", what, diff)
				}
			}
		})
	}
}
