// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/binary"
	"math"
	"time"
	"unicode/utf8"
)

// Bounds of a checkpoint that is read.
const (
	maxCount     = 1 << 62
	maxName      = 253
	maxReadParts = 256
	maxStage     = 1 << 20
	maxSum       = 1e40
)

// codec writes a state, or reads it: the order of the fields is written once. The first problem ends
// the reading.
type codec struct {
	writes  bool
	data    []byte
	problem string
}

func (c *codec) state(s *State) {
	c.length(&s.restarts, MaxRestarts)
	r0 := s.grid.r0
	if c.float(&r0); !c.writes {
		if r0 < DefaultR0 || r0 > MaxR0 {
			c.fail("a ratio out of its bounds")
			return
		}
		s.grid = gridOf(r0)
	}
	c.logs(s.errors[:])
	c.logs(s.latency[:])
	c.arm(&s.canary)
	c.arm(&s.control)
	bucket := s.threshold + 1
	c.length(&bucket, maxBuckets)
	s.threshold = bucket - 1
	c.length(&s.width, maxBuckets)
	c.count(&s.gaps)
	c.voices(&s.loudest, true)
	for i := range s.recent {
		c.count(&s.recent[i].start)
		c.count(&s.recent[i].canary)
		c.count(&s.recent[i].control)
	}
	c.stage(&s.stage)
	parts := len(s.parts)
	c.length(&parts, maxReadParts)
	s.parts = resized(c, s.parts, parts)
	for i := range s.parts {
		c.part(&s.parts[i])
	}
}

func (c *codec) stage(s *stage) {
	c.length(&s.number, maxStage)
	c.list(&s.sequences, maxSequences)
	from := int64(0)
	if !s.latencyFrom.IsZero() {
		from = s.latencyFrom.UnixNano()
	}
	if c.signed(&from); from != 0 {
		s.latencyFrom = time.Unix(0, from)
	}
	c.logs(s.errors[:])
	c.logs(s.latency[:])
	c.arm(&s.canary)
	c.arm(&s.control)
	c.list(&s.buckets, maxBuckets)
	c.list(&s.controlBuckets, maxBuckets)
	c.voices(&s.busiest, false)
}

func (c *codec) arm(a *arm) {
	for _, n := range []*uint64{&a.cells, &a.over, &a.failed, &a.clientErrors, &a.failedOver} {
		c.count(n)
	}
	for _, s := range []*sums{&a.errors, &a.latency} {
		c.count(&s.units)
		c.count(&s.n)
		c.count(&s.x)
		c.float(&s.nn)
		c.float(&s.xn)
		c.float(&s.xx)
	}
}

func (c *codec) voices(list *voices, bets bool) {
	for i := range list {
		v := &list[i]
		c.number(&v.proxy)
		if v.proxy == 0 {
			continue
		}
		for _, n := range []*uint64{&v.credit, &v.n, &v.x, &v.stageN, &v.stageX} {
			c.count(n)
		}
		if bets {
			c.logs(v.errors[:])
			c.logs(v.stageErrors[:])
		}
	}
}

func (c *codec) part(p *part) {
	c.text(&p.name)
	c.signed(&p.at.Epoch)
	for _, n := range []*uint64{&p.at.Cell, &p.start, &p.expected, &p.missing, &p.fleet} {
		c.count(n)
	}
	flags := 0
	for i, flag := range []*bool{&p.silent, &p.lost, &p.gone} {
		if *flag {
			flags |= 1 << i
		}
	}
	c.length(&flags, 7)
	p.silent, p.lost, p.gone = flags&1 != 0, flags&2 != 0, flags&4 != 0
}

func (c *codec) fail(problem string) {
	if c.problem == "" {
		c.problem = problem
	}
	c.data = nil
}

// number is any.
func (c *codec) number(n *uint64) {
	if c.writes {
		c.data = binary.AppendUvarint(c.data, *n)
		return
	}
	value, size := binary.Uvarint(c.data)
	if size <= 0 {
		c.fail("a number that does not end")
		return
	}
	*n, c.data = value, c.data[size:]
}

// count is a number of which many can be added.
func (c *codec) count(n *uint64) {
	if c.number(n); !c.writes && *n > maxCount {
		*n = 0
		c.fail("a count that cannot be")
	}
}

func (c *codec) length(n *int, most int) {
	value := uint64(max(*n, 0)) //nolint:gosec // it is not negative
	c.number(&value)
	if value > uint64(most) { //nolint:gosec // it is a constant
		value = 0
		c.fail("a length that cannot be")
	}
	*n = int(value) //nolint:gosec // it is at most most
}

func (c *codec) signed(n *int64) {
	if c.writes {
		c.data = binary.AppendVarint(c.data, *n)
		return
	}
	value, size := binary.Varint(c.data)
	if size <= 0 {
		c.fail("a number that does not end")
		return
	}
	*n, c.data = value, c.data[size:]
}

// float is a sum of squares: finite, and not negative.
func (c *codec) float(f *float64) {
	if c.writes {
		c.data = binary.BigEndian.AppendUint64(c.data, math.Float64bits(*f))
		return
	}
	if len(c.data) < 8 {
		c.fail("a number that does not end")
		return
	}
	value := math.Float64frombits(binary.BigEndian.Uint64(c.data))
	if !(value >= 0 && value <= maxSum) { // as not a number is neither
		c.fail("a sum that cannot be")
		return
	}
	*f, c.data = value, c.data[8:]
}

func (c *codec) logs(logs []int64) {
	for i := range logs {
		c.signed(&logs[i])
	}
}

func (c *codec) text(text *string) {
	n := len(*text)
	c.length(&n, maxName)
	switch {
	case c.writes:
		c.data = append(c.data, *text...)
	case n > len(c.data) || !utf8.Valid(c.data[:n]):
		c.fail("a name that cannot be")
	default:
		*text, c.data = string(c.data[:n]), c.data[n:]
	}
}

func (c *codec) list(list *[]uint64, most int) {
	n := len(*list)
	c.length(&n, most)
	*list = resized(c, *list, n)
	for i := range *list {
		c.count(&(*list)[i])
	}
}

// resized is a list of a length that was read; one that is written stays.
func resized[T any](c *codec, list []T, length int) []T {
	if c.writes || length == 0 {
		return list
	}
	return make([]T, length)
}
