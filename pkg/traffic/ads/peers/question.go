// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"fmt"
	"time"
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
}

// The fields are those of
//
//	message Question { uint64 age = 1; fixed64 epoch = 2; uint64 cell = 3; }
//
// The age is in milliseconds, and one more.
const (
	questionAge   = 1
	questionEpoch = 2
	questionCell  = 3
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
	return appendNumber(b, questionCell, q.Cell)
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
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the question of a replica: %w", err)
	}
	return nil
}
