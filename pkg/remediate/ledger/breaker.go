// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// breakerOf returns the breaker of a policy; nil is one that is closed and has
// seen no failure.
func breakerOf(s *Status, policyUID string) *v1alpha1.LedgerBreaker {
	for i := range s.Breakers {
		if s.Breakers[i].PolicyUID == policyUID {
			return &s.Breakers[i]
		}
	}
	return nil
}

// Breaker returns the state of a policy's breaker.
func Breaker(s *Status, policyUID string) v1alpha1.BreakerState {
	if b := breakerOf(s, policyUID); b != nil {
		return StateOf(s, b)
	}
	return v1alpha1.BreakerClosed
}

// StateOf returns the state of a breaker. A half-open breaker that waits for no verdict, and
// whose probe holds no open entry, is open: no step could turn that breaker any more.
func StateOf(s *Status, b *v1alpha1.LedgerBreaker) v1alpha1.BreakerState {
	if b.State != v1alpha1.BreakerHalfOpen || b.VerdictDeadlineTime != nil {
		return b.State
	}
	if b.Probe != nil {
		if e := Find(s, *b.Probe); e != nil && e.CompletionTime == nil {
			return v1alpha1.BreakerHalfOpen
		}
	}
	return v1alpha1.BreakerOpen
}

func breakerGate(s *Status, r Request, limits Limits, now time.Time) Gate {
	b := breakerOf(s, r.PolicyUID)
	if b == nil {
		return Gate{Name: GateBreaker, Open: true, Message: "closed, no failure since the last success"}
	}
	switch state := StateOf(s, b); state {
	case v1alpha1.BreakerClosed:
		return Gate{Name: GateBreaker, Open: true, Message: fmt.Sprintf("closed, %d of %d failures in a row", b.Failures, limits.FailureThreshold)}
	case v1alpha1.BreakerOpen:
		return openGate(b, limits, now)
	case v1alpha1.BreakerHalfOpen:
		if b.VerdictDeadlineTime != nil {
			return verdictGate(b, limits, now)
		}
		return Gate{Name: GateBreaker, Message: fmt.Sprintf("half open: step %d of plan %s/%s shows whether it closes", b.Probe.Step, b.Probe.Namespace, b.Probe.PlanName)}
	default:
		return Gate{Name: GateBreaker, Message: fmt.Sprintf("in a state that this version does not know: %q", state)}
	}
}

func openGate(b *v1alpha1.LedgerBreaker, limits Limits, now time.Time) Gate {
	if b.LastOpenTime == nil {
		return Gate{Name: GateBreaker, Message: "open, since an unknown time"}
	}
	until := b.LastOpenTime.Add(limits.OpenDuration)
	if until.After(now) {
		return Gate{
			Name: GateBreaker, Until: until,
			Message: fmt.Sprintf("open after %d failures in a row: one step is tried from %s on", b.Failures, until.UTC().Format(time.RFC3339)),
		}
	}
	return Gate{Name: GateBreaker, Open: true, Message: "open, and it is time to try one step"}
}

// verdictGate waits for the verdict on the probe. A verdict that does not come counts as an
// inconclusive one of that time, so that a breaker turns without an assessor, too.
func verdictGate(b *v1alpha1.LedgerBreaker, limits Limits, now time.Time) Gate {
	if until := b.VerdictDeadlineTime.Add(limits.OpenDuration); until.After(now) {
		return Gate{
			Name: GateBreaker, Until: until,
			Message: fmt.Sprintf("half open: the verdict on %sshows whether it closes; without a verdict one step is tried from %s on", probed(b), until.UTC().Format(time.RFC3339)),
		}
	}
	return Gate{Name: GateBreaker, Open: true, Message: fmt.Sprintf("half open, and no verdict on %scame in time: it is time to try one step", probed(b))}
}

func probed(b *v1alpha1.LedgerBreaker) string {
	if b.Probe == nil {
		return "its probe "
	}
	return fmt.Sprintf("step %d of plan %s/%s ", b.Probe.Step, b.Probe.Namespace, b.Probe.PlanName)
}

// probe makes the step that passed a breaker which is not closed the one that decides.
func probe(s *Status, r Request) {
	if b := breakerOf(s, r.PolicyUID); b != nil && b.State != v1alpha1.BreakerClosed {
		b.State, b.Probe, b.VerdictDeadlineTime = v1alpha1.BreakerHalfOpen, r.Step.DeepCopy(), nil
	}
}

func isProbe(b *v1alpha1.LedgerBreaker, e *v1alpha1.LedgerEntry) bool {
	return b.State == v1alpha1.BreakerHalfOpen && b.Probe != nil && same(*b.Probe, e.StepReference)
}

// succeeded closes a breaker when its probe did well, unless the verdict on the effect of the
// step decides. A step that was granted before it opened says nothing about now.
func succeeded(s *Status, e *v1alpha1.LedgerEntry, at metav1.Time) {
	b := breakerOf(s, e.PolicyUID)
	if b == nil || b.State != v1alpha1.BreakerClosed && !isProbe(b, e) {
		return
	}
	if e.VerdictTimeoutSeconds == 0 {
		closeBreaker(b)
		return
	}
	if b.State == v1alpha1.BreakerHalfOpen {
		deadline := stored(at.Add(time.Duration(e.VerdictTimeoutSeconds) * time.Second))
		b.VerdictDeadlineTime = &deadline
	}
}

func closeBreaker(b *v1alpha1.LedgerBreaker) {
	b.State, b.Failures, b.LastOpenTime, b.Probe, b.VerdictDeadlineTime = v1alpha1.BreakerClosed, 0, nil, nil, nil
}

// failed counts a failure. The failure opens a closed breaker at the threshold under
// which the step was granted, and a half-open breaker whatever the threshold: nothing
// else would ever turn it.
func failed(s *Status, e *v1alpha1.LedgerEntry, at metav1.Time) {
	b := breakerOf(s, e.PolicyUID)
	if b == nil {
		if e.FailureThreshold <= 0 {
			return // a ledger without breakers
		}
		s.Breakers = append(s.Breakers, v1alpha1.LedgerBreaker{PolicyUID: e.PolicyUID, State: v1alpha1.BreakerClosed})
		b = &s.Breakers[len(s.Breakers)-1]
	}
	b.Failures = min(b.Failures+1, maxFailures)
	if !isProbe(b, e) && !opens(s, b, e.FailureThreshold) {
		return
	}
	openBreaker(b, at)
}

func openBreaker(b *v1alpha1.LedgerBreaker, at metav1.Time) {
	b.State, b.LastOpenTime, b.Probe, b.VerdictDeadlineTime = v1alpha1.BreakerOpen, &at, nil, nil
	b.Generation++
}

// opens says whether the failure of a step that is no probe opens a breaker.
func opens(s *Status, b *v1alpha1.LedgerBreaker, threshold int32) bool {
	switch StateOf(s, b) {
	case v1alpha1.BreakerOpen:
		return false
	case v1alpha1.BreakerClosed:
		return threshold > 0 && b.Failures >= threshold
	case v1alpha1.BreakerHalfOpen:
	}
	return true
}

// unprobe gives the place of a probe without a result to the next step.
func unprobe(s *Status, e *v1alpha1.LedgerEntry) {
	if b := breakerOf(s, e.PolicyUID); b != nil && isProbe(b, e) {
		b.State, b.Probe = v1alpha1.BreakerOpen, nil
	}
}

// forgetIdle makes room: a closed breaker of a policy without entries tells
// nothing.
func forgetIdle(s *Status) {
	s.Breakers = slices.DeleteFunc(s.Breakers, func(b v1alpha1.LedgerBreaker) bool {
		return b.State == v1alpha1.BreakerClosed && b.Failures == 0 &&
			!slices.ContainsFunc(s.Entries, func(e v1alpha1.LedgerEntry) bool { return e.PolicyUID == b.PolicyUID })
	})
}
