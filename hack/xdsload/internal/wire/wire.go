// SPDX-License-Identifier: Apache-2.0

// Package wire writes what an Envoy asks and reads as much of the answers as a client
// needs that acknowledges them: names and versions, never a body. Ten thousand clients
// have to share a processor with the server that they measure.
package wire

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// Request is a DeltaDiscoveryRequest.
type Request struct {
	URL                    string
	Subscribe, Unsubscribe []string
	// Initial are versions by name, in the first request of a type.
	Initial map[string]string
	// Nonce answers a response, and Refused says why it was not taken.
	Nonce, Refused string
	// Node of the client, in the first request of a stream.
	Node *Node
}

// Node is what a client says about itself.
type Node struct{ ID, Cluster string }

// Response is what is read of a DeltaDiscoveryResponse.
type Response struct {
	URL, Nonce string
	Resources  []Resource
	Removed    []string
}

// Resource is a name and a version.
type Resource struct{ Name, Version string }

// Encode a request.
func (r Request) Encode() []byte {
	var b []byte
	if r.Node != nil {
		b = bytes(b, 1, r.Node.encode())
	}
	b = text(b, 2, r.URL)
	for _, name := range r.Subscribe {
		b = text(b, 3, name)
	}
	for _, name := range r.Unsubscribe {
		b = text(b, 4, name)
	}
	for name, version := range r.Initial {
		b = bytes(b, 5, text(text(nil, 1, name), 2, version))
	}
	if r.Nonce != "" {
		b = text(b, 6, r.Nonce)
	}
	if r.Refused != "" {
		b = bytes(b, 7, text(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 13), 2, r.Refused))
	}
	return b
}

// encode adds what makes the node of an Envoy 1.40 large: it lists 516 extensions, in
// some 61,000 bytes.
func (n Node) encode() []byte {
	shared := extensions()
	b := make([]byte, 0, len(shared)+len(n.ID)+len(n.Cluster)+64)
	b = text(text(b, 1, n.ID), 2, n.Cluster)
	b = text(b, 6, "envoy")
	b = bytes(b, 8, bytes(nil, 1, []byte{1 << 3, 1, 2 << 3, 40})) // 1.40
	return append(b, shared...)
}

var extensions = sync.OnceValue(func() (b []byte) {
	for i := range 516 {
		one := text(nil, 1, fmt.Sprintf("envoy.filters.network.an_extension_of_envoy_%03d", i))
		one = text(one, 2, "envoy.filters.network")
		one = text(one, 6, "envoy.extensions.filters.network.v3.Ext")
		b = bytes(b, 9, one)
	}
	return b
})

func bytes(b []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
}

func text(b []byte, number protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), value)
}

// Names keeps each text once, however many clients are told it. The zero value is
// ready.
type Names struct {
	mu    sync.RWMutex
	known map[string]string
}

// Of is the one text that equals these bytes.
func (n *Names) Of(b []byte) string {
	n.mu.RLock()
	s, found := n.known[string(b)]
	n.mu.RUnlock()
	if found {
		return s
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string]string{}
	}
	s = string(b)
	n.known[s] = s
	return s
}

var errMalformed = errors.New("reading a discovery response: malformed protobuf")

// Decode a response.
func Decode(data []byte, names *Names) (r Response, err error) {
	err = fields(data, func(number int, value []byte) error {
		switch number {
		case 2:
			resource, err := decodeResource(value, names)
			r.Resources = append(r.Resources, resource)
			return err
		case 4:
			r.URL = names.Of(value)
		case 5:
			r.Nonce = string(value)
		case 6:
			r.Removed = append(r.Removed, names.Of(value))
		}
		return nil
	})
	return r, err
}

func decodeResource(data []byte, names *Names) (r Resource, err error) {
	err = fields(data, func(number int, value []byte) error {
		switch number {
		case 1:
			r.Version = names.Of(value)
		case 3:
			r.Name = names.Of(value)
		}
		return nil
	})
	return r, err
}

func fields(data []byte, f func(int, []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errMalformed
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return errMalformed
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			if err := f(int(number), value); err != nil {
				return err
			}
		}
		data = data[n:]
	}
	return nil
}
