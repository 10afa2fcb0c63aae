// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Question is what whoever follows a replica tells it: with the first one what is known already,
// and then every second how old its own watches are.
type Question struct {
	// Age is how long ago the watches of the follower heard something; Aged says that it is told.
	Age  time.Duration
	Aged bool
	// Epoch and Cell are the last cell that is known; zero when none is.
	Epoch time.Time
	Cell  uint64
	// Orders are all that the follower knows of, each time.
	Orders []Order
}

// Order has a replica carry out the prepared rollback of a release.
type Order struct {
	// Release is its uid.
	Release string
	// Sequence is that of the rollback.
	Sequence uint64
}

// Compare sorts by release and sequence.
func (o Order) Compare(other Order) int {
	return cmp.Or(cmp.Compare(o.Release, other.Release), cmp.Compare(o.Sequence, other.Sequence))
}

// maxOrders bounds what one question can order.
const maxOrders = 1000

// The fields are those of
//
//	message Question { uint64 age = 1; fixed64 epoch = 2; uint64 cell = 3; repeated Order orders = 4; }
//	message Order { string release = 1; uint64 sequence = 2; }
//
// The age is in milliseconds, and one more.
const (
	questionAge    = 1
	questionEpoch  = 2
	questionCell   = 3
	questionOrders = 4

	orderRelease  = 1
	orderSequence = 2
)

// maxAge bounds an age, in milliseconds.
const maxAge = 1 << 40

// Encode implements serve.Encoder.
func (q *Question) Encode() []byte {
	var b []byte
	if q.Aged {
		b = appendNumber(b, questionAge, uint64(max(0, q.Age.Milliseconds()))+1) //nolint:gosec // not negative
	}
	b = appendMoment(b, questionEpoch, q.Epoch)
	b = appendNumber(b, questionCell, q.Cell)
	for _, o := range q.Orders[:min(len(q.Orders), maxOrders)] {
		order := appendNumber(appendText(nil, orderRelease, o.Release), orderSequence, o.Sequence)
		b = protowire.AppendBytes(protowire.AppendTag(b, questionOrders, protowire.BytesType), order)
	}
	return b
}

// Decode implements serve.Decoder. What a later version may ask for is not known here.
func (q *Question) Decode(data []byte) error {
	*q = Question{}
	err := each(data, func(f field) error {
		switch f.number {
		case questionAge:
			if q.Aged = f.integer > 0; q.Aged {
				q.Age = time.Duration(min(f.integer-1, maxAge)) * time.Millisecond //nolint:gosec // bounded
			}
		case questionEpoch:
			q.Epoch = f.moment()
		case questionCell:
			q.Cell = f.integer
		case questionOrders:
			if len(q.Orders) >= maxOrders {
				return fmt.Errorf("more than %d orders", maxOrders)
			}
			q.Orders = append(q.Orders, Order{})
			return q.Orders[len(q.Orders)-1].decode(f.bytes)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the question of a replica: %w", err)
	}
	return nil
}

func (o *Order) decode(data []byte) error {
	return each(data, func(f field) (err error) {
		switch f.number {
		case orderRelease:
			o.Release, err = f.text()
		case orderSequence:
			o.Sequence = f.integer
		}
		return err
	})
}
