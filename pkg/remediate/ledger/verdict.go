// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// secondsOf is a time-out as an entry holds it, rounded up: absent where no effect is assessed.
func secondsOf(timeout time.Duration) int32 {
	whole := (timeout + time.Second - 1) / time.Second
	return int32(min(max(whole, 0), maxVerdictTimeout)) //nolint:gosec // bounded
}

// ApplyVerdict turns the breaker by the verdict on the effect of a step that has ended. The verdict
// on a probe decides about a half-open breaker. A closed breaker forgets, after an Effective
// verdict, the failures that were before the end of the step. ApplyVerdict changes nothing the
// second time, nor for a step that no breaker waits for. The entry of the step keeps what its
// verdict turned the breaker to.
func ApplyVerdict(s *Status, step Step, verdict effect.Verdict, now time.Time) (*Status, bool) {
	for i := range s.Breakers {
		if b := &s.Breakers[i]; b.VerdictDeadlineTime != nil && b.Probe != nil && same(*b.Probe, step) {
			next := changed(s)
			decideProbe(&next.Breakers[i], verdict, stored(now))
			if e := Find(next, step); e != nil {
				e.BreakerState = next.Breakers[i].State
			}
			return next, true
		}
	}
	if verdict != effect.Effective {
		return s, false
	}
	return endFailures(s, step)
}

// TurnedBy returns what the verdict on a step turned the breaker to; empty if it turned none, or the
// ledger has forgotten the step.
func TurnedBy(s *Status, step Step) v1alpha1.BreakerState {
	if e := Find(s, step); e != nil {
		return e.BreakerState
	}
	return ""
}

// decideProbe turns a half-open breaker. A verdict without a conclusion is no failure, and frees the
// next probe when the breaker was open for long enough again.
func decideProbe(b *v1alpha1.LedgerBreaker, verdict effect.Verdict, at metav1.Time) {
	switch verdict {
	case effect.Effective:
		closeBreaker(b)
		return
	case effect.Ineffective, effect.Invalidated:
		b.Failures = min(b.Failures+1, maxFailures)
	case effect.Inconclusive:
	}
	openBreaker(b, at)
}

// endFailures ends the row of failures of a closed breaker. Failures since the end of the step
// remain, because the verdict comes long after that end.
func endFailures(s *Status, step Step) (*Status, bool) {
	e := Find(s, step)
	if e == nil || e.Outcome != v1alpha1.LedgerSucceeded {
		return s, false
	}
	b := breakerOf(s, e.PolicyUID)
	if b == nil || b.State != v1alpha1.BreakerClosed {
		return s, false
	}
	since := number(s, func(other *v1alpha1.LedgerEntry) bool {
		return other.PolicyUID == e.PolicyUID && other.Outcome == v1alpha1.LedgerFailed && other.CompletionTime != nil && other.CompletionTime.After(e.CompletionTime.Time)
	})
	if since >= b.Failures {
		return s, false
	}
	next := changed(s)
	breakerOf(next, e.PolicyUID).Failures = since
	return next, true
}
