// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

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

// Tallies adds up Baselines by the guards that select their objects.
func Tallies(baselines []v1alpha1.Baseline) map[specguard.GuardRef]Tally {
	counts := map[specguard.GuardRef]Tally{}
	for i := range baselines {
		AddTally(counts, &baselines[i])
	}
	return counts
}

// AddTally counts one Baseline for each guard that selects its object. A retired one does not count.
func AddTally(counts map[specguard.GuardRef]Tally, b *v1alpha1.Baseline) {
	if !b.Guarded() {
		return
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
