// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"slices"
	"time"
)

// Position of a cell at a replica.
type Position struct {
	// Epoch is when the replica began to count, in nanoseconds since 1970.
	Epoch int64
	// Number counts the cells from 1 on.
	Number uint64
}

// EpochOf a time; that of the zero time is 0.
func EpochOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Told is a cell as replicas tell it.
type Told struct {
	Position
	Slot  Slot
	Start time.Time
	// Data is the encoded [Cell].
	Data []byte
}

// Log keeps closed cells of one replica, the oldest first. The zero Log has none.
type Log struct {
	cells []Told
	bytes int
}

// maxLog bounds the cells of a replica in bytes. A busy cell takes some 320 bytes: 184 of data, and
// its overhead. So 500 releases with two variations and one stratum each fill 58 MB in half an hour;
// with two strata each the log reaches its bound after some 17 minutes, and keeps no more.
const maxLog = 64 << 20

// overhead of a cell besides its data, in bytes.
const overhead = 136

// Add a cell at the end. Whoever adds keeps the order, see [Log.Last].
func (l *Log) Add(at Position, of Slot, start time.Time, data []byte) {
	l.cells = append(l.cells, Told{at, of, start, data})
	l.bytes += len(data) + overhead
	for l.bytes > maxLog {
		l.drop(1)
	}
}

// forget cells that began before a time.
func (l *Log) forget(before time.Time) {
	n := 0
	for n < len(l.cells) && l.cells[n].Start.Before(before) {
		n++
	}
	l.drop(n)
}

func (l *Log) drop(n int) {
	for i := range n {
		l.bytes -= len(l.cells[i].Data) + overhead
	}
	l.cells = slices.Delete(l.cells, 0, n)
}

// Last is the position of the newest cell; zero if there is none.
func (l *Log) Last() Position {
	if len(l.cells) == 0 {
		return Position{}
	}
	return l.cells[len(l.cells)-1].Position
}

// After are the cells after a position, so many at most. lost says that there were others between,
// which nobody has any more. After a position of another epoch come all cells of later ones.
func (l *Log) After(after Position, limit int) (cells []Told, lost bool) {
	from, _ := slices.BinarySearchFunc(l.cells, after, func(c Told, p Position) int {
		if c.Epoch < p.Epoch || c.Epoch == p.Epoch && c.Number <= p.Number {
			return -1
		}
		return 1
	})
	cells = slices.Clone(l.cells[from:min(len(l.cells), from+max(0, limit))])
	if len(cells) == 0 {
		return nil, false
	}
	first := cells[0]
	switch {
	case first.Epoch == after.Epoch:
		lost = first.Number != after.Number+1
	case after != Position{}: // the end of the epoch before is not known
		lost = true
	default:
		lost = first.Number != 1
	}
	return cells, lost
}
