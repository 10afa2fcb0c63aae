// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"slices"
	"time"
)

// The bounds of a dispute: so many times in so long the weights of another writer are replaced.
const (
	Max    = 3
	Window = 10 * time.Minute
)

// KeepRecent returns the times of restores that still count at a time: those within [Window] before it.
func KeepRecent(restored []time.Time, now time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(restored), func(at time.Time) bool { return now.Sub(at) >= Window })
}

// CountRestore counts a restore of a route that begins now, and returns the times that count from then on. While [Max]
// restores count, the restore is not permitted, and the error is a [HeldError]. The manager may be empty.
func CountRestore(restored []time.Time, route, manager string, now time.Time) ([]time.Time, error) {
	recent := KeepRecent(restored, now)
	if len(recent) >= Max {
		return recent, &HeldError{route, manager, recent[0].Add(Window)}
	}
	return append(recent, now), nil
}

// HeldError says that another writer keeps changing the weights, and that the router does not put them back for now.
type HeldError struct {
	// Route names the object with the weights for people.
	Route string
	// Manager is the field manager of the other writer; empty where the API does not tell it.
	Manager string
	// Until is when the router may put the weights back again.
	Until time.Time
}

func (e *HeldError) Error() string {
	writer := "another writer"
	if e.Manager != "" {
		writer = fmt.Sprintf("field manager %q", e.Manager)
	}
	return fmt.Sprintf("RouteChangedByAnother: %s changed the weights of %s %d times in %s; they are left alone until %s. Have that writer ignore the weights",
		writer, e.Route, Max+1, Window, e.Until.UTC().Format(time.RFC3339))
}
