// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Recorder is a router that records. The zero one carries out every valid split at
// once, and has proven it; nobody has to acknowledge anything, and nothing was counted. It
// may be used by many at once.
type Recorder struct {
	mu       sync.Mutex
	applied  []traffic.Split
	current  *traffic.Split        // nil before the first one and after a removal
	can      *traffic.Capabilities // nil for all
	refuses  error
	breaks   error
	deaf     error
	observed *traffic.Observation
	settled  time.Time
	cells    []traffic.Cell
}

var _ traffic.Router = (*Recorder)(nil)

// Capabilities implements traffic.Router.
func (r *Recorder) Capabilities() traffic.Capabilities {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.capabilities()
}

func (r *Recorder) capabilities() traffic.Capabilities {
	if r.can == nil {
		return traffic.FullCapabilities()
	}
	return *r.can
}

// Validate implements traffic.Router.
func (r *Recorder) Validate(split traffic.Split) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuses != nil {
		return r.refuses
	}
	return r.validate(split)
}

func (r *Recorder) validate(split traffic.Split) error {
	if err := split.Validate(); err != nil {
		return err
	}
	return r.capabilities().Check(split)
}

// Apply implements traffic.Router. It is an error to break its contract.
func (r *Recorder) Apply(_ context.Context, split traffic.Split) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var highest uint64
	if r.current != nil {
		highest = r.current.Sequence
	}
	invalid := r.validate(split)
	switch {
	case r.breaks != nil:
		return r.breaks
	case invalid != nil:
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, invalid)
	case split.Sequence == 0, split.Sequence < highest:
		return fmt.Errorf("applying sequence %d: %w", split.Sequence, &traffic.LaterError{Sequence: highest})
	}
	split = cloned(split)
	r.applied, r.current = append(r.applied, split), &split
	return nil
}

// Remove implements traffic.Router.
func (r *Recorder) Remove(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.breaks != nil {
		return r.breaks
	}
	r.current = nil
	return nil
}

// cloned is a split that stays as it is when the caller changes its own.
func cloned(s traffic.Split) traffic.Split {
	s.Shares, s.Variations, s.Match.Values = slices.Clone(s.Shares), slices.Clone(s.Variations), maps.Clone(s.Match.Values)
	return s
}

// Observe implements traffic.Router.
func (r *Recorder) Observe(context.Context) (traffic.Observation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.deaf != nil:
		return traffic.Observation{}, r.deaf
	case r.observed != nil:
		return *r.observed, nil
	case r.current == nil:
		return traffic.Observation{Knowledge: traffic.Unknown}, nil
	}
	seen := traffic.Observation{Sequence: r.current.Sequence, Knowledge: r.capabilities().Knowledge, SettledAt: r.settled, Wanted: 1, Acknowledged: 1}
	for _, share := range r.current.Shares {
		seen.Arms = append(seen.Arms, traffic.Arm{Variation: share.Variation})
	}
	return seen, nil
}

// Count has cells counted, at the part that each names, in ascending order of its positions.
func (r *Recorder) Count(cells ...traffic.Cell) {
	r.set(func() { r.cells = append(r.cells, cells...) })
}

// Measure implements traffic.Router.
func (r *Recorder) Measure(_ context.Context, since traffic.Cursor) (traffic.Measurement, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deaf != nil {
		return traffic.Measurement{}, r.deaf
	}
	m := traffic.Measurement{Next: since}
	for _, c := range r.cells {
		read := since[c.Part]
		if c.Position.Epoch > read.Epoch || c.Position.Epoch == read.Epoch && c.Position.Cell > read.Cell {
			m.Cells, m.Next = append(m.Cells, c), m.Next.Advance(c.Part, c.Position)
		}
	}
	return m, nil
}

// Applied is all that was applied, in this order.
func (r *Recorder) Applied() []traffic.Split {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.applied)
}

// Current is what is carried out; nil if nothing is.
func (r *Recorder) Current() *traffic.Split {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// Limit has the router have these capabilities alone.
func (r *Recorder) Limit(can traffic.Capabilities) { r.set(func() { r.can = &can }) }

// SettleAt has Observe say that the split counts as in force from then on, if it is Accepted.
func (r *Recorder) SettleAt(at time.Time) { r.set(func() { r.settled = at }) }

// Refuse has Validate say so; nil has it look at the split again.
func (r *Recorder) Refuse(err error) { r.set(func() { r.refuses = err }) }

// Break has Apply and Remove fail, and change nothing; nil mends it.
func (r *Recorder) Break(err error) { r.set(func() { r.breaks = err }) }

// Say has Observe say this from now on.
func (r *Recorder) Say(seen traffic.Observation) { r.set(func() { r.observed, r.deaf = &seen, nil }) }

// Deafen has Observe know nothing; nil ends it.
func (r *Recorder) Deafen(err error) { r.set(func() { r.deaf = err }) }

func (r *Recorder) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}
