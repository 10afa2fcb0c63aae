// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields are those of
//
//	message Cell {
//	  string namespace = 1; string service = 2; uint32 port = 3; string variation = 4;
//	  fixed64 start = 5; fixed64 from = 6; fixed64 to = 7; uint64 sequence = 8; bool shared = 9;
//	  bytes counts = 10; uint64 proxies = 11; uint64 n = 12; uint64 x = 13;
//	  double nn = 14; double xn = 15; double xx = 16;
//	  uint64 expected = 17; uint64 telling = 18; uint64 silent = 19; uint64 gapped = 20; uint64 refused = 21;
//	  fixed64 loudest = 22; uint64 loudest_n = 23; uint64 loudest_x = 24;
//	  fixed64 busiest = 25; uint64 busiest_n = 26; uint64 busiest_x = 27;
//	}
//
// Moments are in nanoseconds since 1970, 0 for none. Counts are pairs of variable-length integers,
// which number and how much, of those that are not zero.
const (
	cellNamespace = 1
	cellService   = 2
	cellPort      = 3
	cellVariation = 4
	cellStart     = 5
	cellFrom      = 6
	cellTo        = 7
	cellSequence  = 8
	cellShared    = 9
	cellCounts    = 10
	cellProxies   = 11
	cellN         = 12
	cellX         = 13
	cellNN        = 14
	cellXN        = 15
	cellXX        = 16
	cellExpected  = 17
	cellTelling   = 18
	cellSilent    = 19
	cellGapped    = 20
	cellRefused   = 21
	cellLoudest   = 22
	cellLoudestN  = 23
	cellLoudestX  = 24
	cellBusiest   = 25
	cellBusiestN  = 26
	cellBusiestX  = 27
)

// maxName is the length of a name, in bytes.
const maxName = 253

// errWire says that bytes are no cell.
var errWire = errors.New("malformed cell")

// Encode writes a cell.
func (c *Cell) Encode() []byte {
	w := writer{make([]byte, 0, 160)}
	w.text(cellNamespace, c.Namespace)
	w.text(cellService, c.Service)
	w.number(cellPort, uint64(c.Port))
	w.text(cellVariation, c.Variation)
	w.moment(cellStart, c.Start)
	w.moment(cellFrom, c.From)
	w.moment(cellTo, c.To)
	w.number(cellSequence, c.Stratum.Sequence)
	if c.Stratum.Shared {
		w.number(cellShared, 1)
	}
	var counts []byte
	for i, n := range c.Counts {
		if n != 0 {
			counts = binary.AppendUvarint(binary.AppendUvarint(counts, uint64(i)), n) //nolint:gosec // an index
		}
	}
	w.text(cellCounts, string(counts))
	s, o := &c.Spread, &c.Coverage
	w.number(cellProxies, s.Proxies)
	w.number(cellN, s.N)
	w.number(cellX, s.X)
	w.fixed(cellNN, math.Float64bits(s.NN))
	w.fixed(cellXN, math.Float64bits(s.XN))
	w.fixed(cellXX, math.Float64bits(s.XX))
	w.number(cellExpected, o.Expected)
	w.number(cellTelling, o.Telling)
	w.number(cellSilent, o.Silent)
	w.number(cellGapped, o.Gapped)
	w.number(cellRefused, o.Refused)
	w.loud(cellLoudest, c.Loudest)
	w.loud(cellBusiest, c.Busiest)
	return w.data
}

// writer appends fields that are not zero.
type writer struct{ data []byte }

func (w *writer) text(field protowire.Number, text string) {
	if text != "" {
		w.data = protowire.AppendString(protowire.AppendTag(w.data, field, protowire.BytesType), text)
	}
}

func (w *writer) number(field protowire.Number, n uint64) {
	if n != 0 {
		w.data = protowire.AppendVarint(protowire.AppendTag(w.data, field, protowire.VarintType), n)
	}
}

func (w *writer) fixed(field protowire.Number, n uint64) {
	if n != 0 {
		w.data = protowire.AppendFixed64(protowire.AppendTag(w.data, field, protowire.Fixed64Type), n)
	}
}

// loud writes a proxy in three fields that follow each other.
func (w *writer) loud(first protowire.Number, one Loud) {
	if one.ID != 0 {
		w.fixed(first, one.ID)
		w.number(first+1, one.N)
		w.number(first+2, one.X)
	}
}

func (w *writer) moment(field protowire.Number, t time.Time) {
	if !t.IsZero() {
		w.fixed(field, uint64(t.UnixNano())) //nolint:gosec // as it is read
	}
}

// DecodeCell reads one. What a later version has besides is not known here.
func DecodeCell(data []byte) (c Cell, err error) {
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return Cell{}, fmt.Errorf("reading a cell: %w", errWire)
		}
		data = data[n:]
		var number uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(data)
		case protowire.Fixed64Type:
			number, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(field, kind, data)
		}
		if n < 0 {
			return Cell{}, fmt.Errorf("reading a cell: %w", errWire)
		}
		data = data[n:]
		if err := c.set(field, number, text); err != nil {
			return Cell{}, fmt.Errorf("reading a cell: %w", err)
		}
	}
	for _, one := range []*Loud{&c.Loudest, &c.Busiest} {
		if one.ID == 0 { // counts without a proxy say nothing
			*one = Loud{}
		}
	}
	return c, c.check()
}

// set a field, which is a text or a number.
func (c *Cell) set(field protowire.Number, number uint64, text []byte) (err error) {
	switch field {
	case cellNamespace:
		c.Namespace, err = nameOf(text)
	case cellService:
		c.Service, err = nameOf(text)
	case cellVariation:
		c.Variation, err = nameOf(text)
	case cellPort:
		if c.Port = uint16(number); uint64(c.Port) != number { //nolint:gosec // it is compared
			err = fmt.Errorf("%d is no port", number)
		}
	case cellStart:
		c.Start = momentOf(number)
	case cellFrom:
		c.From = momentOf(number)
	case cellTo:
		c.To = momentOf(number)
	case cellSequence:
		c.Stratum.Sequence = number
	case cellShared:
		c.Stratum.Shared = number != 0
	case cellCounts:
		c.Counts, err = countsOf(text)
	default:
		if into := c.sum(field); into != nil {
			*into, err = sumOf(number)
		}
		if into := c.whole(field); into != nil {
			*into = number
		}
	}
	return err
}

// sum is the sum of squares of a field; nil of one that is none.
func (c *Cell) sum(field protowire.Number) *float64 {
	switch field {
	case cellNN:
		return &c.Spread.NN
	case cellXN:
		return &c.Spread.XN
	case cellXX:
		return &c.Spread.XX
	default:
		return nil
	}
}

// whole is the number of a field; nil of one that is not known.
func (c *Cell) whole(field protowire.Number) *uint64 {
	switch field {
	case cellProxies:
		return &c.Spread.Proxies
	case cellN:
		return &c.Spread.N
	case cellX:
		return &c.Spread.X
	case cellExpected:
		return &c.Coverage.Expected
	case cellTelling:
		return &c.Coverage.Telling
	case cellSilent:
		return &c.Coverage.Silent
	case cellGapped:
		return &c.Coverage.Gapped
	case cellRefused:
		return &c.Coverage.Refused
	case cellLoudest:
		return &c.Loudest.ID
	case cellLoudestN:
		return &c.Loudest.N
	case cellLoudestX:
		return &c.Loudest.X
	case cellBusiest:
		return &c.Busiest.ID
	case cellBusiestN:
		return &c.Busiest.N
	case cellBusiestX:
		return &c.Busiest.X
	default:
		return nil
	}
}

// check says what cannot be.
func (c *Cell) check() error {
	switch {
	case c.Namespace == "" || c.Service == "" || c.Variation == "":
		return errors.New("reading a cell: it has no namespace, service or variation")
	case c.Start.IsZero():
		return errors.New("reading a cell: it has no start")
	}
	for _, of := range [][2]uint64{{c.Spread.N, c.Spread.X}, {c.Loudest.N, c.Loudest.X}, {c.Busiest.N, c.Busiest.X}} {
		if of[1] > of[0] {
			return fmt.Errorf("reading a cell: of %d requests %d count against the variation", of[0], of[1])
		}
	}
	return nil
}

func nameOf(text []byte) (string, error) {
	if len(text) > maxName || !utf8.Valid(text) {
		return "", fmt.Errorf("a name of %d bytes that is too long, or not UTF-8", len(text))
	}
	return string(text), nil
}

func momentOf(n uint64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(n)) //nolint:gosec // as it was written
}

func sumOf(bits uint64) (float64, error) {
	f := math.Float64frombits(bits)
	if !(f >= 0 && f <= math.MaxFloat64) { // as not a number is neither
		return 0, fmt.Errorf("%v is no sum of squares", f)
	}
	return f, nil
}

func countsOf(data []byte) (c Counts, err error) {
	for last := -1; len(data) > 0; {
		i, n := binary.Uvarint(data)
		if n <= 0 || i >= uint64(numbers) || int(i) <= last { //nolint:gosec // below numbers
			return Counts{}, errWire
		}
		data = data[n:]
		value, n := binary.Uvarint(data)
		if n <= 0 {
			return Counts{}, errWire
		}
		data, last = data[n:], int(i) //nolint:gosec // below numbers
		c[i] = value
	}
	return c, nil
}
