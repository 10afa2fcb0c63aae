// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The bounds of a dispute: so many times in so long the weights of another writer are replaced.
const (
	MaxRestores   = 3
	RestoreWindow = 10 * time.Minute
)

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
	s.Restored = slices.DeleteFunc(slices.Clone(s.Restored), func(at time.Time) bool { return now.Sub(at) >= RestoreWindow })
	return s
}

// restored counts a restore that begins now.
func (s State) restored(now time.Time) State {
	s = s.since(now)
	s.Restored = append(s.Restored, now)
	return s
}

// HeldError says that another writer keeps changing the weights, and that the router does not put them back for now.
type HeldError struct {
	// Route is for people. Manager is the field manager of the other writer.
	Route, Manager string
	// Until is when the router may put the weights back again.
	Until time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("RouteChangedByAnother: field manager %q changed the weights of %s %d times in %s; they are left alone until %s. Have that writer ignore the weights",
		e.Manager, e.Route, MaxRestores+1, RestoreWindow, e.Until.UTC().Format(time.RFC3339))
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
	if state = state.since(now); len(state.Restored) >= MaxRestores {
		return state, &HeldError{route.String(), other, state.Restored[0].Add(RestoreWindow)}
	}
	return state.restored(now), nil
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
