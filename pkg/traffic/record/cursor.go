// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

const (
	// SnapshotEvery is how many records follow a record with a snapshot before the next one has a snapshot.
	SnapshotEvery = 64
	// maxEnded bounds the ends that a cursor names. It is above the number of works that a release keeps.
	maxEnded = 40
	// maxOpen bounds the intents that a cursor names. One work of a release is under way at a time.
	maxOpen = 8
)

// Cursor says how far the records of a chain tell of one release.
type Cursor struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Occurrence counts how often the history was set back.
	Occurrence int32 `json:"occurrence,omitempty"`
	// Number of the last line of the history that is recorded, its digest, and the percentage of it.
	Number int64  `json:"number,omitempty"`
	Digest string `json:"digest,omitempty"`
	Weight string `json:"weight,omitempty"`
	// Open are the last intents of works that have not ended, by the key of the intent.
	Open []Open `json:"open,omitempty"`
	// Ended are the ends that are recorded, in the order of their works. Works up to Floor that are
	// not among them have their end recorded as well.
	Ended []Ended `json:"ended,omitempty"`
	Floor Place   `json:"floor,omitzero"`
}

// Open is an intent that is recorded.
type Open struct {
	UID string `json:"uid"`
	Key string `json:"key"`
}

// Place of a work among those of its release.
type Place struct {
	Run    int64 `json:"run"`
	Number int64 `json:"number"`
}

func (p Place) compare(other Place) int {
	return cmp.Or(cmp.Compare(p.Run, other.Run), cmp.Compare(p.Number, other.Number))
}

// Ended is the end of a work that is recorded.
type Ended struct {
	Place
	Key string `json:"key"`
}

// Cursors are those of the releases of a chain, by the uid of the release. A release that is gone has none.
type Cursors map[string]Cursor

// snapshot is the body of cursors.
type snapshot struct {
	Version int     `json:"version"`
	Cursors Cursors `json:"cursors"`
}

const snapshotVersion = 1

// Encode writes cursors as the body of a record. The same cursors give the same bytes.
func (c Cursors) Encode() ([]byte, error) {
	data, err := json.Marshal(snapshot{snapshotVersion, c})
	if err != nil {
		return nil, fmt.Errorf("encoding the cursors of releases: %w", err)
	}
	return data, nil
}

// DecodeCursors reads the body of a record.
func DecodeCursors(data []byte) (Cursors, error) {
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("decoding the cursors of releases: %w", err)
	}
	if s.Version != snapshotVersion {
		return nil, fmt.Errorf("decoding the cursors of releases: version %d is not known", s.Version)
	}
	if s.Cursors == nil {
		s.Cursors = Cursors{}
	}
	return s.Cursors, nil
}

// Apply goes on over one record. A record that is not of a release changes nothing.
func (c Cursors) Apply(r *evidence.Record) {
	d := r.Delivery
	if d == nil || d.Release == nil {
		return
	}
	cursor := c[d.Release.UID]
	cursor.Namespace, cursor.Name = d.Release.Namespace, d.Release.Name
	switch r.Kind {
	case evidence.KindReleaseDecision:
		cursor.Number, cursor.Digest, cursor.Weight = d.Decision.Number, r.Subject.Hash, d.Decision.To
	case evidence.KindHistoryGap:
		cursor.Number, cursor.Digest, cursor.Weight = d.Range.Last, "", ""
	case evidence.KindHistorySetBack:
		cursor.Occurrence, cursor.Number, cursor.Digest, cursor.Weight = r.Occurrence+1, max(0, d.Range.Next-1), "", ""
		cursor.Floor = Place{}
	case evidence.KindWorkIntended:
		cursor.open(d.Work)
	case evidence.KindWorkEnded:
		cursor.end(d.Work, evidence.EndKey(d.Work.UID, r.At))
	case evidence.KindReleaseGone:
		delete(c, d.Release.UID)
		return
	default: // a kind of a later version
		return
	}
	c[d.Release.UID] = cursor
}

// open notes an intent in the place of an earlier intent of the same work.
func (c *Cursor) open(w *evidence.Work) {
	open := slices.DeleteFunc(slices.Clone(c.Open), func(o Open) bool { return o.UID == w.UID })
	open = append(open, Open{w.UID, w.Key()})
	c.Open = open[max(0, len(open)-maxOpen):]
}

// end notes the end of a work.
func (c *Cursor) end(w *evidence.Work, key string) {
	c.Open = slices.DeleteFunc(slices.Clone(c.Open), func(o Open) bool { return o.UID == w.UID })
	ended := append(slices.Clone(c.Ended), Ended{Place{w.Run, w.Number}, key})
	slices.SortStableFunc(ended, func(a, b Ended) int { return a.compare(b.Place) })
	for len(ended) > maxEnded {
		if ended[0].compare(c.Floor) > 0 {
			c.Floor = ended[0].Place
		}
		ended = ended[1:]
	}
	c.Ended = ended
}

// hasIntent says whether an intent is recorded.
func (c *Cursor) hasIntent(w *evidence.Work) bool {
	return slices.Contains(c.Open, Open{w.UID, w.Key()})
}

// hasEnd says whether the end of a work is recorded.
func (c *Cursor) hasEnd(at Place, key string) bool {
	return at.compare(c.Floor) <= 0 || slices.ContainsFunc(c.Ended, func(e Ended) bool { return e.Key == key })
}
