// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Status is the state of a ledger, as it is stored.
type Status = v1alpha1.RemediationLedgerStatus

// Step names a step of a plan.
type Step = v1alpha1.StepReference

// same says whether two references name the same step: a plan made again under
// its old name is another one.
func same(a, b Step) bool { return a.PlanUID == b.PlanUID && a.Step == b.Step }

// Find returns the entry of a step, or nil.
func Find(s *Status, step Step) *v1alpha1.LedgerEntry {
	for i := range s.Entries {
		if same(s.Entries[i].StepReference, step) {
			return &s.Entries[i]
		}
	}
	return nil
}

// pruned leaves out what counts for no limit any more.
func pruned(entries []v1alpha1.LedgerEntry, now time.Time) []v1alpha1.LedgerEntry {
	return slices.DeleteFunc(entries, func(e v1alpha1.LedgerEntry) bool { return !counts(&e, day, now) })
}

// counts says whether an entry counts for a limit over a period: from its
// reservation until that long after its end. One from a future that a clock set
// back has made counts too.
func counts(e *v1alpha1.LedgerEntry, period time.Duration, now time.Time) bool {
	return e.CompletionTime == nil || e.CompletionTime.Add(period).After(now)
}

// number counts the entries that a predicate holds for.
func number(s *Status, is func(*v1alpha1.LedgerEntry) bool) int32 {
	n := int32(0)
	for i := range s.Entries {
		if is(&s.Entries[i]) {
			n++
		}
	}
	return n
}

// stored gives a time the precision it is stored with, and no earlier: an end
// that seemed earlier than it was would let a limit forget it too soon.
func stored(t time.Time) metav1.Time {
	whole := t.Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return metav1.NewTime(whole)
}

// changed is the next state after a write.
func changed(s *Status) *Status {
	next := s.DeepCopy()
	next.Sequence++
	return next
}
