// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"time"
)

// Position of a cell at one part of a router.
type Position struct {
	// Epoch is when the part began to count, in nanoseconds since 1970.
	Epoch int64 `json:"epoch"`
	// Cell counts its cells from 1 on.
	Cell uint64 `json:"cell"`
}

// Cursor is how far somebody has read, by the part of the router. Whoever stores it with what was
// made of the cells misses none and gets none twice. The nil Cursor has read nothing.
type Cursor map[string]Position

// Measurement is what was counted after a cursor.
type Measurement struct {
	// Cells are in the order of each part.
	Cells []Cell
	// Next is the cursor after them. More says that there are others already.
	Next Cursor
	More bool
	// Lost are parts of which cells are missing: these were kept for too long, or the part has
	// ended before all were told. Unheard are parts that are not heard now; what they have
	// counted may come later.
	Lost, Unheard []string
	// Wanted is how many have to tell, such as proxies; those that never sent a request tell of
	// nothing.
	Wanted int
}

// Cell is what was counted of one variation on one port in ten seconds, by one part of the router.
// It never changes.
type Cell struct {
	Part      string
	Position  Position
	Variation string
	Port      uint16
	// Start of the ten seconds, by the clock of the part; From and To enclose the time of which
	// was told in these.
	Start, From, To time.Time
	// Sequence that all who told had in force during all of that time; 0 if it changed, or is not
	// known.
	Sequence uint64
	// Over have an answer or were given up, and Failed are those of them that count against the
	// variation. ClientErrors are answers 4xx, which do not count against it. FailedOver were served
	// by the stable variation, and are in no other number.
	Over, Failed, ClientErrors, FailedOver uint64
	// Latency counts by bucket; the bounds are those of the router.
	Latency []uint64
	// Spread are sums over those who told, such as proxies, of n requests that are over and x
	// that failed.
	Spread Spread
	// Loudest is the one of them with the most failures, Busiest that with the most requests. Both
	// are zero where this is not known, and Loudest where none failed.
	Loudest, Busiest Reporter
	// Coverage says who told.
	Coverage Coverage
}

// Reporter is one that told of a cell, such as a proxy: of N requests that are over X failed. Its ID
// is the same in all cells of its life, and not 0.
type Reporter struct{ ID, N, X uint64 }

// Spread are the sums of which the variance between those who tell follows.
type Spread struct {
	Proxies    uint64
	N, X       uint64
	NN, XN, XX float64
}

// Coverage counts those who tell of a variation: Expected have told before, Telling told in this
// cell, Silent were not heard for long, of Gapped it became known that some was lost before, and
// Refused were not taken.
type Coverage struct{ Expected, Telling, Silent, Gapped, Refused uint64 }

// Advance returns the cursor after a cell.
func (c Cursor) Advance(part string, to Position) Cursor {
	next := maps.Clone(c)
	if next == nil {
		next = Cursor{}
	}
	next[part] = to
	return next
}
