// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plumbline-dev/plumbline/internal/condition"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// maxNamed bounds the frozen scopes that a message names.
const maxNamed = 3

// Tally counts the objects of one guard.
type Tally struct {
	Objects int32
	// Drifted objects are in state Drifted or Missing.
	Drifted int32
	// Unknown objects are in state Unknown, or in no state yet.
	Unknown int32
	// Population counts those that mass drift is about.
	Population specguard.Population
}

// Tallies adds up Baselines by the guards that select their objects. Retired ones
// do not count.
func Tallies(baselines []v1alpha1.Baseline) map[specguard.GuardRef]Tally {
	counts := map[specguard.GuardRef]Tally{}
	for i := range baselines {
		b := &baselines[i]
		if !b.Guarded() {
			continue
		}
		for _, name := range b.Status.Guards {
			ref := specguard.ParseGuardRef(name, b.Namespace)
			t := counts[ref]
			t.Objects++
			switch b.Status.State {
			case v1alpha1.StateInSync:
			case v1alpha1.StateDrifted, v1alpha1.StateMissing:
				t.Drifted++
			case v1alpha1.StateRetired, v1alpha1.StateNotGuarded: // of the past, as Guarded says
			case v1alpha1.StateUnknown:
				t.Unknown++
			default:
				t.Unknown++
			}
			t.Population.Add(b.Namespace, &b.Status)
			counts[ref] = t
		}
	}
	return counts
}

// freeze decides the mass drift of a guard.
func (c *Status) freeze(conditions condition.Set, status *v1alpha1.GuardStatus, tally Tally) {
	next := specguard.NextFreeze(specguard.FreezeOf(status), tally.Population, c.Clock.Now())
	status.MassDrift = next.Status()
	var known []condition.Degradation
	if status.MassDrift != nil {
		known = append(known, condition.Degradation{
			Reason:  v1alpha1.ReasonMassDrift,
			Message: fmt.Sprintf("%d of %d objects drift; not repaired by itself: %s", tally.Drifted, tally.Objects, scopes(status.MassDrift)),
		})
	}
	conditions.Degraded("too few objects drift to assume one cause", known...)
}

// scopes names the frozen namespaces and causes.
func scopes(m *v1alpha1.MassDrift) string {
	var parts []string
	if m.EverythingStartTime != nil {
		parts = append(parts, "everything, because more namespaces or causes are frozen than status.massDrift lists")
	}
	for i := range m.Namespaces {
		parts = append(parts, "namespace "+m.Namespaces[i].Name)
	}
	for i := range m.Causes {
		parts = append(parts, "drift "+describe(&m.Causes[i]))
	}
	if more := len(parts) - maxNamed; more > 0 {
		parts = append(parts[:maxNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

func describe(cause *v1alpha1.FrozenCause) string {
	where, by := "of whole objects", "by unknown writers"
	if cause.Path != "" {
		where = "at " + cause.Path
	}
	if cause.User != "" {
		by = "by " + cause.User
	}
	return where + " " + by
}

// tellMassDrift makes one event where each object makes one of its own: their guard
// tells their common cause. The event follows the write of the status, so that a
// write that is tried again tells nothing twice.
func (c *Status) tellMassDrift(g runtime.Object, before, after *v1alpha1.GuardStatus) {
	was, now := specguard.FreezeOf(before), specguard.FreezeOf(after)
	switch begun := now.SubtractScopes(was); {
	case begun.HasScopes():
		c.Recorder.Eventf(g, nil, corev1.EventTypeWarning, v1alpha1.ReasonMassDrift, actionCount,
			"so much drifts at once that one cause is assumed; not repaired by itself: %s", scopes(begun.Status()))
	case was.HasScopes() && !now.HasScopes():
		c.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "MassDriftEnded", actionCount, "few enough objects drift to take each for itself again")
	}
}
