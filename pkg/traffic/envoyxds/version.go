// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// revision of the translation. Whoever changes what comes out for the same input
// raises it; the golden files tell.
const revision = "3"

// digest of what a resource is made of. Each part is written with its length, so
// that two never read as one.
type digest struct{ parts []byte }

func digestOf(t ads.Type, name string) *digest {
	d := &digest{parts: make([]byte, 0, 256)}
	d.add(revision, t.String(), name)
	return d
}

func (d *digest) add(parts ...string) {
	for _, p := range parts {
		d.parts = strconv.AppendInt(d.parts, int64(len(p)), 10)
		d.parts = append(d.parts, ':')
		d.parts = append(d.parts, p...)
	}
}

func (d *digest) number(n int) { d.add(strconv.Itoa(n)) }

// version takes 128 bits, which is enough that no two are ever equal by chance.
func (d *digest) version(sequence uint64) ads.Version {
	sum := sha256.Sum256(d.parts)
	return ads.Version{Sequence: sequence, Hash: base64.RawURLEncoding.EncodeToString(sum[:16])}
}

// message is what all resources can do.
type message interface {
	proto.Message
	ValidateAll() error
}

// encode writes a resource as Envoy is sent it. One that Envoy would refuse is not
// sent.
func encode(m message) ([]byte, error) {
	if err := m.ValidateAll(); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(packed(m))
}

// packed panics on what is not UTF-8, which no input of ours may contain.
func packed(m proto.Message) *anypb.Any {
	a := &anypb.Any{}
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic(fmt.Sprintf("encoding %T: %v", m, err))
	}
	return a
}
