// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// State is what a writer knows of a chain up to a record.
type State struct {
	Cursors Cursors
	// since counts the records since the last one that names a snapshot, which is counted as well.
	since int
}

// NewState returns the state before the first record of a chain.
func NewState() *State { return &State{Cursors: Cursors{}} }

// Apply goes on over one record.
func (s *State) Apply(r *evidence.Record) {
	s.since++
	if r.Body(evidence.BodyCursors) != "" {
		s.since = 1
	}
	s.Cursors.Apply(r)
}

// IsSnapshotDue says whether the next record is to name a body with the cursors.
func (s *State) IsSnapshotDue() bool { return s.since >= SnapshotEvery }

// Fold returns the state after records that follow each other up to the end of their chain. It begins at
// the newest snapshot that can be read, or at the first record of the chain. It returns nil if the records
// have neither: the caller then has to read more of the chain. bodyOf returns nil for a body that cannot
// be believed or is not there.
func Fold(records []evidence.Record, bodyOf func(digest string) ([]byte, error)) (*State, error) {
	for i, r := range slices.Backward(records) {
		digest := r.Body(evidence.BodyCursors)
		if digest == "" {
			continue
		}
		body, err := bodyOf(digest)
		if err != nil {
			return nil, err
		}
		if cursors, err := DecodeCursors(body); err == nil {
			return applyAll(&State{Cursors: cursors}, records[i:]), nil
		}
	}
	if len(records) > 0 && records[0].Chain.Sequence > 1 {
		return nil, nil //nolint:nilnil // more is to be read
	}
	return applyAll(NewState(), records), nil
}

// FoldAll returns the state after all records that a chain still has, without snapshots. What the records
// before them told is told again.
func FoldAll(records []evidence.Record) *State { return applyAll(NewState(), records) }

func applyAll(s *State, records []evidence.Record) *State {
	for i := range records {
		s.Apply(&records[i])
	}
	return s
}
