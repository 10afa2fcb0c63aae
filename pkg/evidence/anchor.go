// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Checkpoint is how far a chain went at a time, noted where the writer of the chain cannot
// write.
type Checkpoint struct {
	Head
	At time.Time `json:"at"`
}

// ParseCheckpoints reads the checkpoints of one chain from JSON; no text has none.
func ParseCheckpoints(text string) ([]Checkpoint, error) {
	if text == "" {
		return nil, nil
	}
	var points []Checkpoint
	if err := json.Unmarshal([]byte(text), &points); err != nil {
		return nil, fmt.Errorf("parsing checkpoints of evidence: %w", err)
	}
	return points, nil
}

// How long checkpoints stay, by their age, and how close together.
const (
	minutesApart = 5 * time.Minute
	keepMinutes  = time.Hour
	keepHours    = 24 * time.Hour
	keepDays     = 30 * 24 * time.Hour
)

// AddCheckpoint notes a head that goes further than the last checkpoint. A head that does
// not, or that contradicts it, changes nothing: what was noted stands. Of the checkpoints
// before the last one, the first of each period stays, so that later heads, however many,
// do not displace it.
func AddCheckpoint(points []Checkpoint, head Head, now time.Time) []Checkpoint {
	if n := len(points); n > 0 && head.Sequence <= points[n-1].Sequence || head.Sequence < 1 {
		return points
	}
	all := append(slices.Clone(points), Checkpoint{Head: head, At: now.UTC().Truncate(time.Second)})
	var kept []Checkpoint
	for i, p := range all {
		last := i == len(all)-1
		if last || len(kept) == 0 && now.Sub(p.At) <= keepDays || len(kept) > 0 && apart(kept[len(kept)-1], p, now) {
			kept = append(kept, p)
		}
	}
	return kept
}

// apart says whether a checkpoint is the first of its period.
func apart(before, p Checkpoint, now time.Time) bool {
	period := 24 * time.Hour
	switch age := now.Sub(p.At); {
	case age <= keepMinutes:
		period = minutesApart
	case age <= keepHours:
		period = time.Hour
	case age > keepDays:
		return false
	}
	return !before.At.Truncate(period).Equal(p.At.Truncate(period))
}
