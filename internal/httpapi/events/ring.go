// SPDX-License-Identifier: Apache-2.0

package events

// Margin is how many seconds before the event that a subscriber names the ring goes on. Events of one second
// have no order among objects, and another replica may have had them in another one. An event that is stored
// later than this after its time can be left out by a subscriber who changes the replica.
const Margin = 60

// Ring has the newest events of a cluster, each encoded once. A place in it is the number of events before.
type Ring struct {
	messages []Message
	size     int
	// head is the place behind the newest event.
	head uint64
	// lost is the newest second of an event that the ring has dropped; it counts where head is beyond size.
	lost int64
}

// NewRing makes a ring that keeps so many events.
func NewRing(size int) *Ring { return &Ring{size: size} }

// Append adds events, and drops the oldest ones beyond the size.
func (r *Ring) Append(news ...Entry) {
	for i := range news {
		if len(r.messages) < r.size {
			r.messages = append(r.messages, newMessage(&news[i]))
		} else {
			old := &r.messages[r.head%uint64(r.size)] //nolint:gosec // the size is positive
			r.lost = max(r.lost, old.ID.Second)
			*old = newMessage(&news[i])
		}
		r.head++
	}
}

// Head returns the place behind the newest event.
func (r *Ring) Head() uint64 { return r.head }

// tail is the place of the oldest event.
func (r *Ring) tail() uint64 { return r.head - uint64(len(r.messages)) }

func (r *Ring) at(place uint64) *Message {
	return &r.messages[place%uint64(r.size)] //nolint:gosec // the size is positive
}

// Read returns up to limit events from a place on, and the place behind them. A subscriber whose place was
// dropped is lapped: the ring has no events for it but those that come from now on.
func (r *Ring) Read(place uint64, limit int) (read []Message, next uint64, lapped bool) {
	if place < r.tail() {
		return nil, r.head, true
	}
	end := min(r.head, place+uint64(limit)) //nolint:gosec // the limit is positive
	read = make([]Message, 0, end-min(end, place))
	for ; place < end; place++ {
		read = append(read, *r.at(place))
	}
	return read, place, false
}

// Resume returns the place from which a subscriber goes on that had an event last, of this ring or of that of
// another replica. It is false, with the head, if an event after that one may have been dropped.
func (r *Ring) Resume(last ID) (place uint64, ok bool) {
	from := last.Second - Margin
	if r.tail() > 0 && r.lost >= from {
		return r.head, false
	}
	place = r.tail()
	for place < r.head && r.at(place).ID.Second < from {
		place++
	}
	return place, true
}
