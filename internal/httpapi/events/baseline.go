// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ofBaseline tells the state of a Baseline and its last quarantine. The place of an event is its type without
// the kind.
func ofBaseline(b *v1alpha1.Baseline) []Entry {
	var all []Entry
	if state, ok := stateOf(b); ok {
		all = append(all, state)
	}
	status := &b.Status
	about := wire.Event{BaselineID: string(b.UID), Status: string(wire.Spell(status.State))}
	if q := status.Quarantine; q != nil {
		e := about
		e.Type, e.Message = wire.EventQuarantined, q.Reason
		all = append(all, entryOf(&b.ObjectMeta, "quarantined", q.StartTime.Time, e))
	}
	if q := status.EndedQuarantine; q != nil {
		e := about
		e.Type, e.Message = wire.EventQuarantineEnded, string(q.Reason)
		all = append(all, entryOf(&b.ObjectMeta, "quarantine_ended", q.EndTime.Time, e))
	}
	slices.SortStableFunc(all, func(x, y Entry) int { return cmp.Compare(x.ID.Second, y.ID.Second) })
	return all
}

// stateOf is the event that the state began. Its id has the time at which the status told the state first, and
// its timestamp is when the drift began. It is false for a Baseline that no assessor has looked at.
func stateOf(b *v1alpha1.Baseline) (Entry, bool) {
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	e := wire.Event{Type: wire.DriftEvent(b.Status.State), BaselineID: string(b.UID), Status: string(wire.Spell(b.Status.State))}
	if ready == nil || !e.Type.Known() {
		return Entry{}, false
	}
	e.Message = ready.Message
	isDrift := b.Status.State == v1alpha1.StateDrifted || b.Status.State == v1alpha1.StateMissing
	if first := b.Status.FirstSeenTime; isDrift && first != nil {
		e.Timestamp = first.Time
	}
	return entryOf(&b.ObjectMeta, e.Status, ready.LastTransitionTime.Time, e), true
}
