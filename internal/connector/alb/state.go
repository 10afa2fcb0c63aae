// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/restore"
)

// State has to outlive the process. The caller stores the state in the status of the release, and gives it to the router
// of the next leader. A tag of the route would be a mark on an object of the user.
type State struct {
	// Sequence is the last one that was sent; 0 before the first one.
	Sequence uint64
	// Active is the stable variation of the last split. A removal gives all requests to Active.
	Active string
	// Began is the time of the first split. Requests from before Began are not counted.
	Began time.Time
	// Confirmed says that the API answered with the weights of Sequence. Other weights are then the work of another
	// writer.
	Confirmed bool
	// Restored are the times of the last restores within [restore.Window], at most [restore.Max] of them.
	Restored []time.Time
}

// decideWrite decides whether the router writes a sequence to a route with other weights. It returns the state before the
// write, or a [restore.HeldError]. If another writer changed weights that the API had confirmed, the bounds of package
// restore count. A new sequence is always written, so a rollback never waits for a dispute.
func decideWrite(state State, route string, sequence uint64, now time.Time) (State, error) {
	if sequence != state.Sequence || !state.Confirmed {
		return state, nil
	}
	var err error
	state.Restored, err = restore.CountRestore(state.Restored, route, "", now)
	return state, err
}

// beginSequence returns the state while a sequence is written: an answer that is lost leaves it unconfirmed.
func (s State) beginSequence(sequence uint64, active string, now time.Time) State {
	if s.Sequence == 0 {
		s.Began = now
	}
	if s.Sequence != sequence {
		s.Confirmed = false
	}
	s.Sequence, s.Active = sequence, active
	return s
}
