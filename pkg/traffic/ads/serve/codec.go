// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

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

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	into, ours := v.(Decoder)
	if !ours {
		return c.other.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
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
// fields, so the bodies are shared by all responses that have them.
func encode(send *ads.Send) mem.BufferSlice {
	parts := make(mem.BufferSlice, 0, 2*len(send.Resources)+1)
	for _, r := range send.Resources {
		parts = append(parts, mem.SliceBuffer(head(r)), mem.SliceBuffer(r.Body))
	}
	url := send.Type.URL()
	tail := make([]byte, 0, len(url)+len(send.Nonce)+8)
	tail = appendText(tail, responseURL, url)
	tail = appendText(tail, responseNonce, send.Nonce)
	for _, name := range send.Removed {
		tail = appendText(tail, responseRemoved, name)
	}
	return append(parts, mem.SliceBuffer(tail))
}

// head is what of a resource's entry goes before its body.
func head(r *ads.Resource) []byte {
	version := r.Version.String()
	size := protowire.SizeTag(resourceName) + protowire.SizeBytes(len(r.Name)) +
		protowire.SizeTag(resourceVersion) + protowire.SizeBytes(len(version)) +
		protowire.SizeTag(resourceBody) + protowire.SizeBytes(len(r.Body))
	b := make([]byte, 0, size-len(r.Body)+protowire.SizeTag(responseResources)+protowire.SizeVarint(uint64(size)))
	b = protowire.AppendTag(b, responseResources, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = appendText(b, resourceName, r.Name)
	b = appendText(b, resourceVersion, version)
	b = protowire.AppendTag(b, resourceBody, protowire.BytesType)
	return protowire.AppendVarint(b, uint64(len(r.Body)))
}

func appendText(b []byte, number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), text)
}
