// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"encoding/binary"
	"math/bits"
	"time"
)

// cell is a time of ten seconds, numbered.
type cell uint32

// Width of a cell.
const Width = 10 * time.Second

func cellOf(t time.Time) cell { return cell(t.Unix() / int64(Width/time.Second)) } //nolint:gosec // until the year 3330

func (c cell) start() time.Time { return time.Unix(int64(c)*int64(Width/time.Second), 0) }

// records are counts by cell, oldest first. Most numbers are zero or small, so one
// takes some thirty bytes instead of 448:
//
//	cell · which counters · which buckets · their numbers · length of all this
//
// The length at the end is for reading the newest first, which is what is asked for.
type records struct{ data []byte }

const (
	cellSize   = 4
	lengthSize = 2
)

// add counts at the end, and let go of what is older than a cell, or over a size.
func (r *records) add(at cell, counts *Counts, oldest cell, most int) {
	var buffer [cellSize + 2*binary.MaxVarintLen64 + numbers*binary.MaxVarintLen64 + lengthSize]byte
	record := binary.BigEndian.AppendUint32(buffer[:0], uint32(at))
	record = appendMask(record, counts[:counters])
	record = appendMask(record, counts[counters:])
	for _, n := range counts {
		if n != 0 {
			record = binary.AppendUvarint(record, n)
		}
	}
	record = binary.BigEndian.AppendUint16(record, uint16(len(record))) //nolint:gosec // less than 600
	r.forget(oldest, most-len(record))
	r.append(record)
}

func appendMask(to []byte, numbers []uint64) []byte {
	var mask uint64
	for i, n := range numbers {
		if n != 0 {
			mask |= 1 << i
		}
	}
	return binary.AppendUvarint(to, mask)
}

// append grows by an eighth at most: there are tens of thousands of these.
func (r *records) append(record []byte) {
	if need := len(r.data) + len(record); need > cap(r.data) {
		grown := make([]byte, len(r.data), need+need/8)
		copy(grown, r.data)
		r.data = grown
	}
	r.data = append(r.data, record...)
}

// forget what is older than a cell, and the oldest of what is more than a size.
func (r *records) forget(oldest cell, most int) {
	var ignored Counts
	for len(r.data) > 0 && (cell(binary.BigEndian.Uint32(r.data)) < oldest || len(r.data) > most) {
		r.data = r.data[decode(r.data, &ignored)+lengthSize:]
	}
	if len(r.data) == 0 {
		r.data = nil
	}
}

// decode a record and say how long it is, without the length at its end.
func decode(data []byte, into *Counts) int {
	at := cellSize
	next := func() uint64 {
		n, size := binary.Uvarint(data[at:])
		at += size
		return n
	}
	count, latency := next(), next()
	for mask := count; mask != 0; mask &= mask - 1 {
		into[bits.TrailingZeros64(mask)] += next()
	}
	for mask := latency; mask != 0; mask &= mask - 1 {
		into[int(counters)+bits.TrailingZeros64(mask)] += next()
	}
	return at
}

// back goes from the newest cell to the oldest that is asked for. What several records
// have of one cell is added up; who is told of it keeps nothing of it.
func (r *records) back(oldest cell, tell func(cell, *Counts) bool) {
	data := r.data
	for len(data) > 0 {
		var sum Counts
		at := last(data)
		if at < oldest {
			return
		}
		for len(data) > 0 && last(data) == at {
			from := begin(data)
			decode(data[from:], &sum)
			data = data[:from]
		}
		if !tell(at, &sum) {
			return
		}
	}
}

// begin is where the last record does.
func begin(data []byte) int {
	end := len(data) - lengthSize
	return end - int(binary.BigEndian.Uint16(data[end:]))
}

func last(data []byte) cell { return cell(binary.BigEndian.Uint32(data[begin(data):])) }
