// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
	"unique"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
)

// Update is what one replica tells another at a time.
type Update struct {
	// Number is 1 for the first one of a stream, and grows by one.
	Number uint64
	// Now is the time by the clock of whoever tells it.
	Now time.Time
	// Epoch is when it began to count.
	Epoch time.Time
	// Complete says that all that was known is told by now.
	Complete bool
	Changes  []acknowledged.Change
	Counts   []Count
	// Cells are those that have closed since the update before, in ascending order.
	Cells []Cell
}

// Cell is a cell of [signals.Cell], encoded.
type Cell struct {
	Number uint64
	Data   []byte
}

// Count is what the proxies of one replica have counted of a variation since its
// epoch, in all: so nothing is lost when an update is. It may begin anew when nobody
// has told of the variation for long.
type Count struct {
	Namespace, Service, Variation string
	// Completed are the requests that are over, Failed those of them that count against
	// the variation, InFlight those that are not.
	Completed, Failed, InFlight uint64
	// Uncounted are proxies whose counts of it had no room.
	Uncounted uint64
}

// The fields are those of
//
//	message Update {
//	  uint64 number = 1; fixed64 now = 2; bool complete = 3; repeated Change changes = 4;
//	  fixed64 epoch = 5; repeated Count counts = 6; repeated Cell cells = 7;
//	}
//	message Cell { uint64 number = 1; bytes data = 2; }
//	message Change {
//	  string uid = 1; string namespace = 2; string pod = 3;
//	  fixed64 connected = 4; fixed64 left = 5; repeated Route routes = 6;
//	}
//	message Route {
//	  string name = 1; uint64 sequence = 2; string hash = 3; fixed64 former = 4;
//	  uint64 about_sequence = 5; string about_hash = 6; string why = 7;
//	}
//	message Count {
//	  string namespace = 1; string service = 2; string variation = 3;
//	  uint64 completed = 4; uint64 failed = 5; uint64 in_flight = 6; uint64 uncounted = 7;
//	}
//
// A moment is in nanoseconds since 1970, 0 for none.
const (
	updateNumber   = 1
	updateNow      = 2
	updateComplete = 3
	updateChanges  = 4
	updateEpoch    = 5
	updateCounts   = 6
	updateCells    = 7

	cellNumber = 1
	cellData   = 2

	changeUID       = 1
	changeNamespace = 2
	changePod       = 3
	changeConnected = 4
	changeLeft      = 5
	changeRoutes    = 6

	routeName          = 1
	routeSequence      = 2
	routeHash          = 3
	routeFormer        = 4
	routeAboutSequence = 5
	routeAboutHash     = 6
	routeWhy           = 7

	countNamespace = 1
	countService   = 2
	countVariation = 3
	countCompleted = 4
	countFailed    = 5
	countInFlight  = 6
	countUncounted = 7
)

// maxText is the length of any text in an update, in bytes.
const maxText = 1024

// errWire says that bytes are no message.
var errWire = errors.New("malformed protobuf")

// Encode writes it.
func (u *Update) Encode() []byte {
	b := appendNumber(nil, updateNumber, u.Number)
	b = appendMoment(b, updateNow, u.Now)
	if u.Complete {
		b = appendNumber(b, updateComplete, 1)
	}
	var scratch, inner []byte
	for i := range u.Changes {
		scratch, inner = appendChange(scratch[:0], inner, &u.Changes[i])
		b = protowire.AppendBytes(protowire.AppendTag(b, updateChanges, protowire.BytesType), scratch)
	}
	b = appendMoment(b, updateEpoch, u.Epoch)
	for i := range u.Counts {
		scratch = u.Counts[i].append(scratch[:0])
		b = protowire.AppendBytes(protowire.AppendTag(b, updateCounts, protowire.BytesType), scratch)
	}
	for _, c := range u.Cells {
		scratch = appendNumber(scratch[:0], cellNumber, c.Number)
		scratch = protowire.AppendBytes(protowire.AppendTag(scratch, cellData, protowire.BytesType), c.Data)
		b = protowire.AppendBytes(protowire.AppendTag(b, updateCells, protowire.BytesType), scratch)
	}
	return b
}

func (c *Count) append(b []byte) []byte {
	b = appendText(b, countNamespace, c.Namespace)
	b = appendText(b, countService, c.Service)
	b = appendText(b, countVariation, c.Variation)
	b = appendNumber(b, countCompleted, c.Completed)
	b = appendNumber(b, countFailed, c.Failed)
	b = appendNumber(b, countInFlight, c.InFlight)
	return appendNumber(b, countUncounted, c.Uncounted)
}

func appendChange(b, scratch []byte, c *acknowledged.Change) (encoded, used []byte) {
	b = appendText(b, changeUID, c.UID)
	b = appendText(b, changeNamespace, c.Namespace)
	b = appendText(b, changePod, c.Pod)
	b = appendMoment(b, changeConnected, c.Connected)
	b = appendMoment(b, changeLeft, c.Left)
	for i := range c.Routes {
		scratch = appendRoute(scratch[:0], &c.Routes[i])
		b = protowire.AppendBytes(protowire.AppendTag(b, changeRoutes, protowire.BytesType), scratch)
	}
	return b, scratch
}

func appendRoute(b []byte, r *acknowledged.Route) []byte {
	b = appendText(b, routeName, r.Name)
	b = appendNumber(b, routeSequence, r.Has.Sequence)
	b = appendText(b, routeHash, r.Has.Hash)
	b = appendMoment(b, routeFormer, r.Former)
	b = appendNumber(b, routeAboutSequence, r.About.Sequence)
	b = appendText(b, routeAboutHash, r.About.Hash)
	return appendText(b, routeWhy, r.Why)
}

func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendMoment(b []byte, field protowire.Number, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(t.UnixNano())) //nolint:gosec // as it is read
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

// Decode reads one. It keeps nothing of data.
func (u *Update) Decode(data []byte) error {
	*u = Update{}
	err := each(data, func(f field) error {
		switch f.number {
		case updateNumber:
			u.Number = f.integer
		case updateNow:
			u.Now = f.moment()
		case updateComplete:
			u.Complete = f.integer != 0
		case updateChanges:
			u.Changes = append(u.Changes, acknowledged.Change{})
			return decodeChange(&u.Changes[len(u.Changes)-1], f.bytes)
		case updateEpoch:
			u.Epoch = f.moment()
		case updateCounts:
			u.Counts = append(u.Counts, Count{})
			return u.Counts[len(u.Counts)-1].decode(f.bytes)
		case updateCells:
			u.Cells = append(u.Cells, Cell{})
			return u.Cells[len(u.Cells)-1].decode(f.bytes)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading an update of a replica: %w", err)
	}
	return nil
}

func (c *Cell) decode(data []byte) error {
	return each(data, func(f field) error {
		switch f.number {
		case cellNumber:
			c.Number = f.integer
		case cellData:
			c.Data = slices.Clone(f.bytes)
		}
		return nil
	})
}

func decodeChange(c *acknowledged.Change, data []byte) error {
	return each(data, func(f field) (err error) {
		switch f.number {
		case changeUID:
			c.UID, err = f.text()
		case changeNamespace:
			c.Namespace, err = f.shared()
		case changePod:
			c.Pod, err = f.text()
		case changeConnected:
			c.Connected = f.moment()
		case changeLeft:
			c.Left = f.moment()
		case changeRoutes:
			c.Routes = append(c.Routes, acknowledged.Route{})
			return decodeRoute(&c.Routes[len(c.Routes)-1], f.bytes)
		}
		return err
	})
}

func decodeRoute(r *acknowledged.Route, data []byte) error {
	return each(data, func(f field) (err error) {
		switch f.number {
		case routeName:
			r.Name, err = f.shared()
		case routeSequence:
			r.Has.Sequence = f.integer
		case routeHash:
			r.Has.Hash, err = f.shared()
		case routeFormer:
			r.Former = f.moment()
		case routeAboutSequence:
			r.About.Sequence = f.integer
		case routeAboutHash:
			r.About.Hash, err = f.shared()
		case routeWhy:
			r.Why, err = f.shared()
		}
		return err
	})
}

func (c *Count) decode(data []byte) error {
	return each(data, func(f field) (err error) {
		switch f.number {
		case countNamespace:
			c.Namespace, err = f.shared()
		case countService:
			c.Service, err = f.shared()
		case countVariation:
			c.Variation, err = f.shared()
		case countCompleted:
			c.Completed = f.integer
		case countFailed:
			c.Failed = f.integer
		case countInFlight:
			c.InFlight = f.integer
		case countUncounted:
			c.Uncounted = f.integer
		}
		return err
	})
}

// field of a message: a number or bytes, as its kind is.
type field struct {
	number  int
	integer uint64
	bytes   []byte
}

// each calls f for each field. Those of a kind that nobody uses are skipped: another
// version of the other side may know more.
func each(data []byte, f func(field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errWire
		}
		data = data[n:]
		found := field{number: int(number)}
		switch kind {
		case protowire.VarintType:
			found.integer, n = protowire.ConsumeVarint(data)
		case protowire.Fixed64Type:
			found.integer, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			found.bytes, n = protowire.ConsumeBytes(data)
		case protowire.Fixed32Type, protowire.StartGroupType, protowire.EndGroupType:
			n = protowire.ConsumeFieldValue(number, kind, data)
		default:
			return errWire
		}
		if n < 0 {
			return errWire
		}
		if err := f(found); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (f field) moment() time.Time {
	if f.integer == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(f.integer)) //nolint:gosec // as it was written
}

func (f field) text() (string, error) {
	switch {
	case len(f.bytes) > maxText:
		return "", fmt.Errorf("a text of %d bytes, want at most %d", len(f.bytes), maxText)
	case !utf8.Valid(f.bytes):
		return "", errors.New("a text is not UTF-8")
	}
	return string(f.bytes), nil
}

// shared is a text that many have.
func (f field) shared() (string, error) {
	text, err := f.text()
	return unique.Make(text).Value(), err
}

// shifted is the update by the clock of who hears it.
func (u *Update) shifted(now time.Time) []acknowledged.Change {
	by := now.Sub(u.Now)
	shift := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(by)
		}
	}
	for i := range u.Changes {
		c := &u.Changes[i]
		shift(&c.Connected)
		shift(&c.Left)
		for j := range c.Routes {
			shift(&c.Routes[j].Former)
		}
	}
	return u.Changes
}
