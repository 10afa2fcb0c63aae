// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// The bounds of what a proxy may say.
const (
	// maxName is the length of a resource's name or version, in bytes: namespace, Service, port
	// and variation of ours have 204 at most.
	maxName = 253 + 64
	// maxNames is how many names and versions one request has: all of 10,000 Services.
	maxNames = 50_000
	// maxText is what is kept of what a proxy says about itself or about a resource
	// that it refuses; Envoy repeats the whole resource.
	maxText = 2048
)

// node is what is of use of what a proxy says about itself. Nothing of it is proof of
// anything.
type node struct {
	id      string
	cluster string
	// kind of the program, such as envoy or haproxy; empty when it does not say.
	kind string
	// version of the program: major, minor, patch. Zero when it does not say.
	version [3]uint64
}

// request is a DeltaDiscoveryRequest.
type request struct {
	ads.Request
	url  string
	node node
	// bytes is the length of the message, without that of its node.
	bytes int
}

// maxNode is how long a node is that costs its proxy no tokens: an Envoy repeats its node, with
// the names of all its extensions, in each request. That of Envoy 1.40 has 60 KiB.
const maxNode = 128 << 10

// The numbers of the fields, of envoy/service/discovery/v3/discovery.proto and
// envoy/config/core/v3/base.proto.
const (
	requestNode        = 1
	requestURL         = 2
	requestSubscribe   = 3
	requestUnsubscribe = 4
	requestInitial     = 5
	requestNonce       = 6
	requestError       = 7

	statusMessage = 2

	nodeID      = 1
	nodeCluster = 2
	nodeKind    = 6 // user_agent_name
	nodeBuild   = 8 // user_agent_build_version

	buildVersion = 1

	entryKey   = 1
	entryValue = 2
)

// errWire says that bytes are no message.
var errWire = errors.New("malformed protobuf")

// Decode implements Decoder.
func (r *request) Decode(data []byte) error {
	if err := r.decode(data); err != nil {
		return err
	}
	r.bytes = len(data) - min(nodeBytes(data), maxNode)
	return nil
}

// decode reads a request in place of the one that was there.
func (r *request) decode(data []byte) error {
	*r = request{}
	names := 0
	err := fields(data, func(number int, value []byte) error {
		var err error
		if number == requestSubscribe || number == requestUnsubscribe || number == requestInitial {
			if names++; names > maxNames {
				return fmt.Errorf("more than %d names: want fewer in one request", maxNames)
			}
		}
		switch number {
		case requestNode:
			err = r.node.decode(value)
		case requestURL:
			r.url, err = typeURL(value)
		case requestSubscribe:
			r.Subscribe, err = appendName(r.Subscribe, value)
		case requestUnsubscribe:
			r.Unsubscribe, err = appendName(r.Unsubscribe, value)
		case requestInitial:
			err = r.decodeInitial(value)
		case requestNonce:
			r.Nonce, err = text(value)
		case requestError:
			r.Refused = true
			r.Message, err = decodeMessage(r.Message, value)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading a discovery request: %w", err)
	}
	return nil
}

// nodeBytes returns the length of the node of a request that was decoded.
func nodeBytes(data []byte) (n int) {
	_ = fields(data, func(number int, value []byte) error { // decode has read it
		if number == requestNode {
			n += len(value)
		}
		return nil
	})
	return n
}

func (r *request) decodeInitial(data []byte) error {
	var name, version string
	err := fields(data, func(number int, value []byte) error {
		var err error
		switch number {
		case entryKey:
			name, err = text(value)
		case entryValue:
			version, err = text(value)
		}
		return err
	})
	if r.Initial == nil {
		r.Initial = map[string]string{}
	}
	r.Initial[name] = version
	return err
}

func (n *node) decode(data []byte) error {
	return fields(data, func(number int, value []byte) error {
		switch number {
		case nodeID:
			n.id = truncate(value)
		case nodeCluster:
			n.cluster = truncate(value)
		case nodeKind:
			n.kind = truncate(value)
		case nodeBuild:
			return fields(value, func(number int, value []byte) error {
				if number != buildVersion {
					return nil
				}
				return numbers(value, n.version[:])
			})
		}
		return nil
	})
}

// decodeMessage reads the text of a status; before is that of an earlier part of it.
func decodeMessage(before string, data []byte) (message string, err error) {
	message = before
	err = fields(data, func(number int, value []byte) error {
		if number == statusMessage {
			message = truncate(value)
		}
		return nil
	})
	return message, err
}

// fields calls f for each field that has a length. Others are skipped: none that is
// of use has no length, but the numbers of a version.
func fields(data []byte, f func(int, []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errWire
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
				return errWire
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return errWire
		}
		data = data[n:]
		if err := f(int(number), value); err != nil {
			return err
		}
	}
	return nil
}

// numbers reads fields 1, 2, … that are integers.
func numbers(data []byte, into []uint64) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errWire
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return errWire
		}
		if kind == protowire.VarintType && int(number) <= len(into) {
			into[number-1], _ = protowire.ConsumeVarint(data)
		}
		data = data[n:]
	}
	return nil
}

func appendName(names []string, value []byte) ([]string, error) {
	name, err := text(value)
	return append(names, name), err
}

// typeURL is a text, of which there is one for all requests if the type is served.
func typeURL(value []byte) (string, error) {
	for kind := ads.Cluster; kind <= ads.Route; kind++ {
		if url := kind.URL(); string(value) == url {
			return url, nil
		}
	}
	return text(value)
}

// text is a name or a version.
func text(value []byte) (string, error) {
	switch {
	case len(value) > maxName:
		return "", fmt.Errorf("a name or version of %d bytes, want at most %d", len(value), maxName)
	case !utf8.Valid(value):
		return "", errors.New("a name or version is not UTF-8")
	}
	return string(value), nil
}

// truncate is as much of a text as is kept.
func truncate(value []byte) string {
	return strings.ToValidUTF8(string(value[:min(len(value), maxText)]), "")
}
