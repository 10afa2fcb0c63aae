// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"strconv"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of everything else
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// Encoder is a message of the same server, or of a client of it, that encodes itself.
type Encoder interface{ Encode() []byte }

// Decoder is one that decodes itself. It keeps nothing of data.
type Decoder interface{ Decode(data []byte) error }

// codec encodes responses as references to what was encoded before, and decodes
// requests without their node. Other messages of the same server encode and decode
// themselves, or are left to the codec of protobuf.
type codec struct{ other encoding.CodecV2 }

// Codec is that of a client of a server made with [Options].
func Codec() encoding.CodecV2 { return newCodec() }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Name implements encoding.CodecV2.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *ads.Send:
		return encode(m), nil
	case Encoder:
		return mem.BufferSlice{mem.SliceBuffer(m.Encode())}, nil
	}
	return c.other.Marshal(v)
}

// messages are the buffers of messages that come in several frames. In the pool of gRPC one mebibyte
// is the next size after 32 KiB: the first message of an Envoy, of 61 KB, had one of these cleared.
var messages = mem.NewTieredBufferPool(4<<10, 16<<10, 32<<10, 64<<10, 128<<10, 256<<10, 1<<20)

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	into, ours := v.(Decoder)
	if !ours {
		return c.other.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(messages)
	defer whole.Free()
	if err := into.Decode(whole.ReadOnlyData()); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}

// The numbers of the fields of a DeltaDiscoveryResponse and of a Resource in it.
const (
	responseResources = 2
	responseURL       = 4
	responseNonce     = 5
	responseRemoved   = 6

	resourceVersion = 1
	resourceBody    = 2
	resourceName    = 3
)

// encode makes a DeltaDiscoveryResponse. A message is the concatenation of its
// fields, so the bodies are shared by all responses that have them. All else is in one piece.
func encode(send *ads.Send) mem.BufferSlice {
	url := send.Type.URL()
	size := protowire.SizeTag(responseURL) + protowire.SizeBytes(len(url)) + protowire.SizeTag(responseNonce) + protowire.SizeBytes(len(send.Nonce))
	for _, name := range send.Removed {
		size += protowire.SizeTag(responseRemoved) + protowire.SizeBytes(len(name))
	}
	for _, r := range send.Resources {
		entry := entrySize(r)
		size += protowire.SizeTag(responseResources) + protowire.SizeBytes(entry) - len(r.Body)
	}
	own := make([]byte, 0, size)
	parts := make(mem.BufferSlice, 0, 2*len(send.Resources)+1)
	for _, r := range send.Resources {
		begin := len(own)
		own = appendHead(own, r)
		parts = append(parts, mem.SliceBuffer(own[begin:len(own):len(own)]), mem.SliceBuffer(r.Body))
	}
	begin := len(own)
	own = appendText(own, responseURL, url)
	own = appendText(own, responseNonce, send.Nonce)
	for _, name := range send.Removed {
		own = appendText(own, responseRemoved, name)
	}
	return append(parts, mem.SliceBuffer(own[begin:]))
}

// entrySize is the length of a resource's entry.
func entrySize(r *ads.Resource) int {
	return protowire.SizeTag(resourceName) + protowire.SizeBytes(len(r.Name)) +
		protowire.SizeTag(resourceVersion) + protowire.SizeBytes(versionSize(r.Version)) +
		protowire.SizeTag(resourceBody) + protowire.SizeBytes(len(r.Body))
}

// versionSize is the length of [ads.Version.String].
func versionSize(v ads.Version) int {
	var digits [20]byte
	return len(strconv.AppendUint(digits[:0], v.Sequence, 10)) + len(".") + len(v.Hash)
}

// appendHead appends what of a resource's entry goes before its body.
func appendHead(b []byte, r *ads.Resource) []byte {
	b = protowire.AppendTag(b, responseResources, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(entrySize(r))) //nolint:gosec // some kilobytes
	b = appendText(b, resourceName, r.Name)
	b = protowire.AppendTag(b, resourceVersion, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(versionSize(r.Version))) //nolint:gosec // some bytes
	b = append(append(strconv.AppendUint(b, r.Version.Sequence, 10), '.'), r.Version.Hash...)
	b = protowire.AppendTag(b, resourceBody, protowire.BytesType)
	return protowire.AppendVarint(b, uint64(len(r.Body)))
}

func appendText(b []byte, number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), text)
}
