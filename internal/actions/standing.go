// SPDX-License-Identifier: Apache-2.0

package actions

import "github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"

// Standing is the state of a guarded object, for counting, sorting and deciding. The order
// is worst first.
type Standing int

// The standings.
const (
	StandingMissing Standing = iota
	StandingDrifted
	StandingUnknown
	StandingInSync
	StandingRetired
	StandingNotGuarded
)

// StandingOf takes an empty or unheard-of state for unknown: what was never
// compared is not in sync.
func StandingOf(b *v1alpha1.Baseline) Standing {
	switch b.Status.State {
	case v1alpha1.StateInSync:
		return StandingInSync
	case v1alpha1.StateDrifted:
		return StandingDrifted
	case v1alpha1.StateMissing:
		return StandingMissing
	case v1alpha1.StateRetired:
		return StandingRetired
	case v1alpha1.StateNotGuarded:
		return StandingNotGuarded
	case v1alpha1.StateUnknown:
		return StandingUnknown
	default:
		return StandingUnknown
	}
}

// CountFindings counts the findings of an object, those that its status does not list included.
func CountFindings(b *v1alpha1.Baseline) int {
	return max(int(b.Status.FindingsTotal), len(b.Status.Findings))
}
