// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/restore"
)

// The bounds of a dispute, which all routers share.
const (
	MaxRestores   = restore.Max
	RestoreWindow = restore.Window
)

// HeldError says that another writer keeps changing the weights, and that the router does not put them back for now.
type HeldError = restore.HeldError

// State is what has to outlive the process. The caller stores it in the status of the release, and gives it to the
// router of the next leader. It is not in the route, which belongs to its user.
type State struct {
	// Sequence is the last one that was written; 0 before the first one.
	Sequence uint64
	// Active is the stable variation of the last split, which a removal leaves all requests to.
	Active string
	// Restored are the times of the last restores within [RestoreWindow], at most [MaxRestores] of them.
	Restored []time.Time
	// Editor is the field manager of the last writer of other weights; "" if the weights were not changed.
	Editor string
}

// since drops the restores that no longer count.
func (s State) since(now time.Time) State {
	s.Restored = restore.KeepRecent(s.Restored, now)
	return s
}

// decide returns the state after a write of a sequence to a route with other weights, or a [HeldError]. Weights that
// another writer has changed since this very sequence was written are put back at most [MaxRestores] times in
// [RestoreWindow]. A new sequence is always written, so a rollback never waits for a dispute.
func decide(route *Route, state State, sequence uint64, manager string, now time.Time) (State, error) {
	other := changedBy(route, manager)
	if sequence != state.Sequence || other == "" {
		return state, nil
	}
	state.Editor = other
	var err error
	state.Restored, err = restore.CountRestore(state.Restored, route.String(), other, now)
	return state, err
}

// changedBy returns the field manager who wrote the rules last; "" if that is the given one. Rules are an atomic list,
// so they have one manager, or several who wrote the same.
func changedBy(route *Route, manager string) string {
	var others []string
	for _, entry := range route.ManagedFields {
		if entry.Subresource != "" || entry.FieldsV1 == nil || !ownsRules(entry.FieldsV1.GetRawBytes()) {
			continue
		}
		if entry.Manager == manager {
			return ""
		}
		others = append(others, entry.Manager)
	}
	if len(others) == 0 {
		return "unknown"
	}
	return strings.Join(slices.Compact(others), ", ")
}

func ownsRules(fields []byte) bool {
	var set struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if json.Unmarshal(fields, &set) != nil {
		return false // fields that cannot be read have no known manager
	}
	_, owns := set.Spec["f:rules"]
	return owns
}
