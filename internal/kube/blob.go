// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"sync/atomic"
)

// ErrNotKept says that the content of a version is not kept in memory. A live read of the
// object gives the content, as long as the version is the present one.
var ErrNotKept = errors.New("the content of this version is not kept")

// blob is a compressed part of a version. A quota may drop it at any time.
type blob struct {
	data atomic.Pointer[[]byte]
}

// newBlob wraps data; nil stands for no data.
func newBlob(data []byte) *blob {
	if data == nil {
		return nil
	}
	b := &blob{}
	b.data.Store(&data)
	return b
}

// read returns the data, nil when there is none or when it was dropped.
func (b *blob) read() []byte {
	if b == nil {
		return nil
	}
	if data := b.data.Load(); data != nil {
		return *data
	}
	return nil
}

func (b *blob) size() int64 { return int64(len(b.read())) }

// drop releases the data.
func (b *blob) drop() { b.data.Store(nil) }
