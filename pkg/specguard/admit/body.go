// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"
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

// errTooLarge says that a body is over MaxBodyBytes.
var errTooLarge = errors.New("the review is too large")

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readBody reads a body of at most MaxBodyBytes into a pooled buffer. On an
// error the buffer holds what came until then.
func readBody(body io.Reader, contentLength int64) (*bytes.Buffer, error) {
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	if contentLength > 0 {
		buf.Grow(int(min(contentLength, MaxBodyBytes)) + bytes.MinRead) // ReadFrom wants that much room to see the end.
	}
	if contentLength > MaxBodyBytes {
		if _, err := io.CopyN(buf, body, prefixBytes); err != nil {
			return buf, err
		}
		return buf, errTooLarge
	}
	n, err := buf.ReadFrom(io.LimitReader(body, MaxBodyBytes+1))
	if err == nil && n > MaxBodyBytes {
		err = errTooLarge
	}
	return buf, err
}

// freeBody gives a buffer back; nothing that points into it may be used afterwards.
func freeBody(buf *bytes.Buffer) {
	if buf.Cap() <= keepBytes {
		buffers.Put(buf)
	}
}
