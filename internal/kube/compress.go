// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// MaxBodySize bounds a body before compression, in bytes: the limit of the
// canonical hash.
const MaxBodySize = 8 << 20

// One encoder and one decoder serve all goroutines: EncodeAll and DecodeAll are
// safe for concurrent use and keep their own pool.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstd.SpeedDefault),
			zstd.WithEncoderConcurrency(2),
			zstd.WithWindowSize(1<<17),
			zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(fmt.Sprintf("making a zstd encoder from constant options: %v", err))
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil,
			zstd.WithDecoderConcurrency(2),
			zstd.WithDecoderMaxMemory(MaxBodySize),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			panic(fmt.Sprintf("making a zstd decoder from constant options: %v", err))
		}
		return d
	})
)

// Compress returns body in Zstandard, as BaselineRevisions hold it.
func Compress(body []byte) []byte {
	return compact(encoder().EncodeAll(body, nil))
}

// Decompress undoes Compress; it refuses what would grow over MaxBodySize.
func Decompress(body []byte) ([]byte, error) { return decompress(body) }

func decompress(body []byte) ([]byte, error) {
	out, err := decoder().DecodeAll(body, nil)
	if err != nil {
		return nil, fmt.Errorf("decompressing a body of %d bytes: %w", len(body), err)
	}
	return out, nil
}

// compact gives up the spare capacity, which at ten thousand bodies is worth it.
func compact(b []byte) []byte {
	if cap(b)-len(b) < len(b)/8 {
		return b
	}
	return append(make([]byte, 0, len(b)), b...)
}
