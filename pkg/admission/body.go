// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"io"
	"sync"
)

const (
	// MaxBodyBytes bounds a review: two objects of at most 3 MiB, the API
	// server's own limit, and the rest. controller-runtime has the same bound.
	MaxBodyBytes = 7 << 20
	// keepBytes is the largest buffer that is used again; the rare big ones go
	// back to the garbage collector.
	keepBytes = 1 << 20
	// prefixBytes is how much is read of a review that is not worked on: enough
	// for its uid, which the API server writes first.
	prefixBytes = 4 << 10
)

var (
	// errTooLarge says that a body is over MaxBodyBytes.
	errTooLarge = errors.New("the review is too large")
	// errNoRoom says that there are too many bytes of bodies in work already.
	errNoRoom = errors.New("no room for the review")
)

// buffers holds *[]byte, so that putting one back allocates nothing.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// body is a review's bytes in a pooled buffer.
type body struct {
	pooled *[]byte
	bytes  []byte
}

// readBody reads a body of at most MaxBodyBytes. The buffer grows with what
// really comes, never to what was merely announced, and its growth is charged
// to the place: a thousand callers that announce a megabyte and send a byte
// cost a thousand small buffers. On an error the body holds what came until
// then.
func readBody(from io.Reader, announced int64, place *place) (body, error) {
	b := body{pooled: buffers.Get().(*[]byte)}
	b.bytes = (*b.pooled)[:0]
	if !place.grow(int64(cap(b.bytes))) {
		// The others' buffers may be large because of others' bodies.
		buffers.Put(b.pooled)
		b = body{pooled: new([]byte)}
	}
	limit := MaxBodyBytes
	if announced > MaxBodyBytes {
		limit = prefixBytes
	}
	for {
		if err := b.room(announced, place); err != nil {
			return b, err
		}
		n, err := from.Read(b.bytes[len(b.bytes):min(cap(b.bytes), limit+1)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case len(b.bytes) > limit:
			return b, errTooLarge
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return b, err
		}
	}
}

// room makes sure that at least one more byte fits.
func (b *body) room(announced int64, place *place) error {
	have := cap(b.bytes)
	if len(b.bytes) < have {
		return nil
	}
	want := max(prefixBytes, 4*have)
	if announced >= int64(have) {
		want = min(want, max(prefixBytes, int(min(announced, MaxBodyBytes))+1)) // One more, to see the end.
	}
	want = min(want, MaxBodyBytes+1)
	if !place.grow(int64(want - have)) {
		return errNoRoom
	}
	grown := make([]byte, len(b.bytes), want)
	copy(grown, b.bytes)
	b.bytes = grown
	return nil
}

// free gives the buffer back; nothing that points into it may be used afterwards.
func (b *body) free() {
	if b.pooled == nil || cap(b.bytes) > keepBytes {
		return
	}
	*b.pooled = b.bytes
	buffers.Put(b.pooled)
}

// readPrefix reads the uid of a review that is not worked on.
func readPrefix(from io.Reader) *Review {
	var prefix [prefixBytes]byte
	n, _ := io.ReadFull(from, prefix[:]) // It ends early as a rule.
	review, _ := decodeReview(prefix[:n])
	return review
}

// discard takes the rest of a body that is not looked at: an answer while the
// caller still sends would be lost with the connection.
func discard(from io.Reader) {
	_, _ = io.Copy(io.Discard, io.LimitReader(from, 2*MaxBodyBytes)) // Whatever goes wrong here, the answer is tried.
}
